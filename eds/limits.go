package eds

import "hdsd/internal/rest"

// limits bound the names of one subscription.
type limits struct{ names, bytes int }

// limiter bounds the requests of clients.
type limiter struct {
	maxNames  int // of a subscription, however few resources there are
	published *publication
}

// limits returns the current limits, which grow with the number of resources.
func (l *limiter) limits() limits {
	names := max(l.maxNames, 2*l.published.peak())
	return limits{names: names, bytes: 256 * names}
}

// raised tells users how to raise a limit.
const raised = "ask for \"*\", or raise limits.max_source_clusters in hdsd's configuration and restart it"

func (l limits) check(names, bytes int) error {
	if names > l.names {
		return rest.TooLarge("a subscription may have up to %d names: "+raised, l.names)
	}
	if bytes > l.bytes {
		return rest.TooLarge("the names of a subscription may have up to %d bytes together: "+raised, l.bytes)
	}
	return nil
}
