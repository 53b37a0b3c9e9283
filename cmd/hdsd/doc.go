// Command hdsd is the whole program: the coordinator (serve), the built-in checker
// (check), the commands that query or control a running coordinator, and the
// bootstraps of Envoys that work with it. Each command has one file. Exit status:
// 0 done, 1 failed, 2 wrong usage.
//
// json and csv are for programs, and look the same in a pipe and on a terminal.
// Tables are for people: they fit the terminal by wrapping, never by cutting, and
// show times as clock times and durations.
package main
