"""What every room uses: errors, words of messages, checks of arguments, what this process may take."""
