// Package architecture holds the rules of the house as tests: who may import
// whom, one package comment each, and how long a file may be. It has no code
// of its own.
package architecture
