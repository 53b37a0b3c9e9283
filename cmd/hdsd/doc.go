// Command hdsd is the whole program: the coordinator (serve), the built-in
// checker (check), and the commands that ask a running coordinator. Each
// command is one file. Exit status: 0 done, 1 failed, 2 wrong usage.
package main
