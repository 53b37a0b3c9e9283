// Package table prints tables that fit a terminal: aligned, wrapped and coloured
// columns, and times and durations as people write them.
//
// It starts no goroutine and keeps at most a block of rows in memory. It imports
// internal/printable and golang.org/x/{term,text}.
package table
