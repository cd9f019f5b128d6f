#!/usr/bin/python3
"""What testdata/mysql says is what a real MySQL answers, the one that `scripts/peers` has (needs root); ours answers the same.

Ring: all.
"""

import sys

import mysql_answers

if __name__ == "__main__":
    sys.argv.append("--peer")
    mysql_answers.main()
