"""Parts that every room uses: errors, words of messages, checks of arguments, limits of this process."""
