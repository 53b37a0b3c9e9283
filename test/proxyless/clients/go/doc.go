// Command go calls each target at a steady rate, and prints each call as a line of JSON.
// Arguments: the deadline of a call and the pause after it, in milliseconds, and targets.
package main
