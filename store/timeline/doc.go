// Package timeline keeps time for the history although the wall clock may be wrong.
//
// It knows four times of a transition, all in nanoseconds since 1970:
//
//   - its own time, which the wall clock gave when it happened;
//   - its recorded time, which is its key: at least its own time, and later than
//     that of every transition before it;
//   - when it was recorded by steady time, which retention goes by;
//   - the time at which it is shown: its own, unless that turned out to be wrong.
//
// Steady time is the wall clock's while that is believed. While the clock is
// doubted, steady time goes on by what has passed. The clock is doubted once it is
// further from steady time than a leap, so a wrong clock ages the history by no more
// than that. It is believed again when it is back near steady time, when somebody
// confirms it, or when nothing from before the doubt is kept.
//
// A Timeline is a value. Methods that change it return the next one, apart from
// Record, which is called for each transition.
//
// The package is pure: no clock, goroutine, lock or log, only the standard library.
package timeline
