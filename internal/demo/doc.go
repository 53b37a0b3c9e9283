// Package demo shows hdsd at work on one machine: a coordinator, three
// checkers in three zones, four upstreams that fail, hang and recover, and a
// data plane that takes their health by EDS over ADS.
//
// It owns everything it starts: Run ends all of it before it returns, whether
// the script is over, its context ends, or something fails. Checkers and data
// plane are real Envoys where the wheel can be had, else the built-in checker
// and a small ADS subscriber. What it tells is what it sees: each line waits
// for the thing that it names and says how long that took.
//
// Its folders envoy and upstream run real Envoys and controllable upstreams;
// the end-to-end tests use them, too.
package demo
