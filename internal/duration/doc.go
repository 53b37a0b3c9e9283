// Package duration reads durations as people write them: 500ms, 1h30m, 30d, 1w2d12h.
//
// It owns the spelling, which configuration and command line share. It guarantees:
//   - What time.ParseDuration reads and is not negative means the same here.
//   - A day is 24 hours, a week 7 days; no more units are known, since a month and a
//     year are not always as long.
//   - Nothing overflows: what is too long is an error, as is everything else that is
//     no duration. Each error says how to put it right.
//
// It starts no goroutine and imports nothing of this module.
package duration
