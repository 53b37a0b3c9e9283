// Package share divides a bounded amount (of streams, watches, names, bytes) fairly
// among callers.
//
// A Pool has a limit for each caller and one for all of them. A caller is a key: its
// identity or, without one, its connection. As long as the pool has room, a caller may
// take up to its own limit. When the pool is full, whoever has most makes room: the
// newest of its leases that can be ended is ended, for callers that would still have
// less than it. So no caller can keep the others out, and two callers that ask for
// everything get half each. A refusal says which limit was reached, by whom, and how to
// raise it. It is RESOURCE_EXHAUSTED in gRPC and 429 in HTTP.
//
//	pool := share.NewPool(share.Limit{
//		What: "watches", Field: "limits.max_watches", Total: 10_000,
//		EachField: "limits.max_watches_per_caller", Each: 1000,
//	})
//	lease, err := pool.Take(caller.Key(), 1, func(err error) { stop(err) })
//	if err != nil {
//		return err
//	}
//	defer lease.Release()
//
// A Queue is for what callers can wait for, such as bytes in flight: it refuses nobody, and
// callers take turns. A Room is one whose small amounts do not wait for large ones.
//
// A pool costs one mutex and, for each change, the logarithm of the number of callers.
// It forgets callers that have nothing. It starts no goroutine, and imports grpc for
// the status of its error.
package share
