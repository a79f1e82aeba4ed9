//! The program as a whole: what it says and what it exits with on bad input, and the tables that it prints. No network.

mod command_line;
