package config

import configv1 "hdsd/gen/hdsd/config/v1"

// bytesPerCluster is the size of a cluster in one message that has all of them: in a
// management server's response, or in the request of a data plane. That request names
// each twice, as subscribed and with its version.
const bytesPerCluster = 640

// messageBytes returns the default of limits.max_message_bytes: 64 MiB, or more if a
// management server may have too many clusters for that.
func messageBytes(clusters uint32) uint32 {
	return uint32(min(max(defaultMaxMessageBytes, uint64(clusters)*bytesPerCluster), maxMessageBytes))
}

// BytesInFlight returns limits.max_bytes_in_flight or, without it, a sixteenth of the memory that
// there is, in bytes: at least room for the largest message and a little more, and at most 1 GiB.
// They take up to four times as much while all are in use.
func BytesInFlight(l *configv1.Limits, memory uint64) int64 {
	if limit := l.GetMaxBytesInFlight(); limit > 0 {
		return int64(limit)
	}
	minimum := uint64(l.GetMaxMessageBytes()) + minMessageBytes
	return int64(max(minimum, min(memory/memoryShare, mostInFlight)))
}

const (
	memoryShare  = 16
	mostInFlight = 1 << 30
)

// LargestAnswer returns the size limit of a management server's response, and of an
// answer of CSDS. A lower limits.max_message_bytes bounds only requests.
func LargestAnswer(l *configv1.Limits) int {
	return int(max(defaultMaxMessageBytes, l.GetMaxMessageBytes()))
}

// Names returns how many names a data plane may subscribe to on one stream: twice as
// many as the sources may have resources of a type. A data plane may subscribe to
// replacements before it unsubscribes from what they replace.
func Names(c *Config) int {
	return 2 * len(c.GetSources()) * int(c.GetLimits().GetMaxSourceClusters())
}

func (c *checks) limits(l *configv1.Limits) {
	c.limit("limits.max_message_bytes", l.GetMaxMessageBytes(), minMessageBytes, maxMessageBytes)
	c.limit("limits.max_connections", l.GetMaxConnections(), minConnections, maxCount)
	c.limit("limits.max_streams_per_connection", l.GetMaxStreamsPerConnection(), minStreams, maxCount)
	c.limit("limits.max_bytes_in_flight", l.GetMaxBytesInFlight(), minMessageBytes, maxCount)
	c.limit("limits.max_connections_per_caller", l.GetMaxConnectionsPerCaller(), 1, maxCount)
	c.limit("limits.max_streams", l.GetMaxStreams(), minStreams, maxCount)
	c.limit("limits.max_streams_per_caller", l.GetMaxStreamsPerCaller(), 1, maxCount)
	c.limit("limits.max_subscriptions", l.GetMaxSubscriptions(), 1, maxCount)
	c.limit("limits.max_subscriptions_per_caller", l.GetMaxSubscriptionsPerCaller(), 1, maxCount)
	c.limit("limits.max_source_clusters", l.GetMaxSourceClusters(), minSourceSize, maxCount)
	c.limit("limits.max_source_endpoints", l.GetMaxSourceEndpoints(), minSourceSize, maxCount)
	c.limit("limits.max_cluster_endpoints", l.GetMaxClusterEndpoints(), minSourceSize, maxInCluster)
	c.limit("limits.max_ids_per_caller", l.GetMaxIdsPerCaller(), 1, maxCount)
	c.limit("limits.max_joins_per_minute", l.GetMaxJoinsPerMinute(), 1, maxCount)
	c.limit("limits.max_watchers", l.GetMaxWatchers(), 1, maxCount)
	c.limit("limits.max_watchers_per_caller", l.GetMaxWatchersPerCaller(), 1, maxCount)
	c.limit("limits.max_queries", l.GetMaxQueries(), 1, maxCount)
	c.limit("limits.max_queries_per_caller", l.GetMaxQueriesPerCaller(), 1, maxCount)
	c.limit("limits.max_query_rows", l.GetMaxQueryRows(), minQueryRows, maxCount)
	if limit := l.GetMaxBytesInFlight(); c.root.Has("limits.max_bytes_in_flight") && limit < l.GetMaxMessageBytes() {
		c.warn("limits.max_bytes_in_flight", "is %d, so that a message of limits.max_message_bytes takes more than there is: write %d or more", limit, l.GetMaxMessageBytes())
	}
	const bytes = "limits.max_message_bytes"
	if need := messageBytes(l.GetMaxSourceClusters()); need > defaultMaxMessageBytes && c.root.Has(bytes) && l.GetMaxMessageBytes() < need {
		c.warn(bytes, "is %d, which may be too few for a message with all of limits.max_source_clusters: write %d, or leave it out", l.GetMaxMessageBytes(), need)
	}
}

func (c *checks) limit(field string, value, minimum, maximum uint32) {
	if c.root.Has(field) && (value < minimum || value > maximum) {
		c.add(field, "is %d: from %d to %d is possible", value, minimum, maximum)
	}
}
