"""What all tests need of the process that runs them."""

import signal

# A program started in the background has SIGINT ignored, and hands that down: the tests of Ctrl-C would wait for ever.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
