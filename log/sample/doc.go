// Package sample has log entries for tests.
package sample
