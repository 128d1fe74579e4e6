//! The book and the README against the program: command lines, links, and tables that are made from the code.
