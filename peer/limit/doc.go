// Package limit divides a bounded amount (of streams, watches, names, bytes) fairly
// among callers, and keeps floods that they cause out of the log.
//
// A Pool has a limit for each caller and one for all of them. A caller is a key: its
// identity or, without one, its connection. As long as the pool has room, a caller may
// take up to its own limit. When the pool is full, whoever has most makes room: the
// newest of its leases that can be ended is ended, for callers that would still have
// less than it. So no caller can keep the others out, and two callers that ask for
// everything get half each. A refusal says which limit was reached, by whom, and how to
// raise it. It is RESOURCE_EXHAUSTED in gRPC and 429 in HTTP.
//
//	pool := limit.NewPool(limit.Limit{
//		What: "watches", Field: "limits.max_watches", Total: 10_000,
//		PerCallerField: "limits.max_watches_per_caller", PerCaller: 1000,
//	})
//	lease, err := pool.Take(caller.Key(), 1, func(err error) { stop(err) })
//	if err != nil {
//		return err
//	}
//	defer lease.Release()
//
// A Queue is for what callers can wait for, such as bytes in flight or a place to work: it
// refuses nobody, and callers take turns. A Room is one whose small amounts do not wait for
// large ones.
//
// A Listener has a bounded number of connections, and ends them when their time is over.
//
// A Pace logs one event of a kind a second, with the number of those that it left out. An
// Episode logs a trouble that comes and goes once a minute. Neither has a clock.
//
// A pool costs one mutex and, for each change, the logarithm of the number of callers, and so
// does a queue while somebody waits. Both forget callers that have nothing. Nothing here
// starts a goroutine. The package imports zerolog, and grpc for the status of its error.
package limit
