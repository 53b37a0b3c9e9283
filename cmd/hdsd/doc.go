// Command hdsd is the whole program: the coordinator (serve), the built-in
// checker (check), the commands that ask a running coordinator or change what
// it does, and the bootstraps of Envoys that work with it. Each command is one
// file. Exit status: 0 done, 1 failed, 2 wrong usage.
//
// json and csv are for programs and do not change with where they go. Tables
// are for people: they fit the terminal, by wrapping and never by cutting, and
// show times as clocks and durations.
package main
