// Command hdsd is the whole program. It has the coordinator (serve), the built-in
// checker (check), and the commands that query or control a running coordinator. It
// also prints the bootstraps of Envoys. Each command has one file. Exit status:
// 0 done, 1 failed, 2 wrong usage.
//
// json and csv are for programs, and look the same in a pipe and on a terminal.
// Tables are for people: they fit the terminal by wrapping, never by cutting, and
// show times as clock times and durations.
package main
