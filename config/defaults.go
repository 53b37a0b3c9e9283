package config

import (
	"net/netip"
	"os"
	"path/filepath"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	configv1 "hdsd/gen/hdsd/config/v1"
)

const (
	defaultGRPCAddress     = "127.0.0.1:18000"
	defaultHTTPAddress     = "127.0.0.1:18080"
	defaultDataDir         = "data"
	defaultRedundancy      = 3
	defaultGrace           = 5 * time.Second
	defaultSettle          = 3 * time.Second
	defaultProbation       = 30 * time.Second
	defaultInterval        = time.Second
	defaultMinInterval     = 100 * time.Millisecond
	defaultMaxProbes       = 20_000
	defaultRetention       = 90 * 24 * time.Hour
	defaultConnectionAge   = 24 * time.Hour
	defaultMaxMessageBytes = 64 << 20
	defaultMaxConnections  = 20_000
	defaultMaxStreams      = 1000
	defaultMaxAllStreams   = 25_000
	defaultMaxOwnStreams   = 24_000
	defaultMaxNames        = 400_000
	defaultMaxOwnNames     = 200_000
	defaultMaxOwnConns     = 15_000
	defaultMaxClusters     = 100_000
	defaultMaxEndpoints    = 2_000_000
	defaultMaxInCluster    = 150_000
	defaultMaxIDs          = 2000
	defaultMaxJoins        = 1200
	defaultMaxWatchers     = 5000
	defaultMaxOwnWatchers  = 1000
	defaultMaxQueries      = 1000
	defaultMaxOwnQueries   = 100
	defaultMaxQueryRows    = 200_000
	defaultDoubtShare      = 0.2
	defaultPathShare       = 0.5
	defaultRelease         = 0.05
	defaultSuppress        = 2000
	defaultReuse           = 750
	defaultKeep            = 5 * time.Minute
	defaultHoldShare       = 0.5
	defaultHoldFor         = 5 * time.Minute
	defaultMaxSeries       = 100
	defaultRecording       = 256 << 20
	defaultPrefix          = "/hdsd"
	defaultSessionTTL      = 3 * time.Second
	defaultCommitInterval  = 5 * time.Millisecond
)

func fillDefaults(cfg *Config, folder string) error {
	if cfg.GetNodeId() == "" {
		name, err := os.Hostname()
		if err != nil {
			return err
		}
		cfg.NodeId = name
	}
	fill(&cfg.Grpc, &configv1.Listener{})
	fill(&cfg.Http, &configv1.Listener{})
	fill(&cfg.Assignment, &configv1.Assignment{})
	fill(&cfg.Reporting, &configv1.Reporting{})
	fill(&cfg.Verdict, &configv1.Verdict{})
	fill(&cfg.History, &configv1.History{})
	fill(&cfg.Checkers, &configv1.Checkers{})
	fill(&cfg.Limits, &configv1.Limits{})
	fill(&cfg.Grpc.Address, defaultGRPCAddress)
	fill(&cfg.Http.Address, defaultHTTPAddress)
	fill(&cfg.Grpc.MaxConnectionAge, durationpb.New(defaultConnectionAge))
	fill(&cfg.Http.MaxConnectionAge, durationpb.New(defaultConnectionAge))
	fill(&cfg.DataDir, filepath.Join(folder, defaultDataDir))
	fill(&cfg.Assignment.Redundancy, defaultRedundancy)
	fill(&cfg.Assignment.ReconnectGrace, durationpb.New(defaultGrace))
	fill(&cfg.Assignment.Settle, durationpb.New(defaultSettle))
	fill(&cfg.Checkers.Probation, durationpb.New(defaultProbation))
	fill(&cfg.Checkers.ProbeTargets, &configv1.ProbeTargets{})
	fill(&cfg.Checkers.ProbeTargets.MinInterval, durationpb.New(defaultMinInterval))
	fill(&cfg.Checkers.ProbeTargets.MaxProbesPerSecond, defaultMaxProbes)
	fill(&cfg.Reporting.Interval, durationpb.New(defaultInterval))
	fill(&cfg.History.Retention, durationpb.New(defaultRetention))
	fill(&cfg.Limits.MaxConnections, defaultMaxConnections)
	fill(&cfg.Limits.MaxStreamsPerConnection, defaultMaxStreams)
	fill(&cfg.Limits.MaxConnectionsPerCaller, defaultMaxOwnConns)
	fill(&cfg.Limits.MaxStreams, defaultMaxAllStreams)
	fill(&cfg.Limits.MaxStreamsPerCaller, defaultMaxOwnStreams)
	fill(&cfg.Limits.MaxSubscriptions, defaultMaxNames)
	fill(&cfg.Limits.MaxSubscriptionsPerCaller, defaultMaxOwnNames)
	fill(&cfg.Limits.MaxSourceClusters, defaultMaxClusters)
	fill(&cfg.Limits.MaxSourceEndpoints, defaultMaxEndpoints)
	fill(&cfg.Limits.MaxClusterEndpoints, defaultMaxInCluster)
	fill(&cfg.Limits.MaxIdsPerCaller, defaultMaxIDs)
	fill(&cfg.Limits.MaxJoinsPerMinute, defaultMaxJoins)
	fill(&cfg.Limits.MaxWatchers, defaultMaxWatchers)
	fill(&cfg.Limits.MaxWatchersPerCaller, defaultMaxOwnWatchers)
	fill(&cfg.Limits.MaxQueries, defaultMaxQueries)
	fill(&cfg.Limits.MaxQueriesPerCaller, defaultMaxOwnQueries)
	fill(&cfg.Limits.MaxQueryRows, defaultMaxQueryRows)
	fillHolds(cfg.GetSources())
	if cfg.GetRecording() != nil {
		fill(&cfg.Recording.MaxBytes, defaultRecording)
	}
	if cfg.GetMetrics() != nil {
		fill(&cfg.Metrics.MaxClusters, defaultMaxSeries)
	}
	if cfg.GetRelay() != nil {
		fill(&cfg.Relay.Keep, durationpb.New(defaultKeep))
	}
	fillReplication(cfg.GetReplication())
	fill(&cfg.Limits.MaxMessageBytes, messageBytes(cfg.Limits.MaxSourceClusters))
	return nil
}

// fillReplication fills in a replication that has endpoints and an address. It leaves advertise empty
// if the port is 0, since that is not the port on which the replica listens.
func fillReplication(r *configv1.Replication) {
	if r == nil {
		return
	}
	fill(&r.Etcd.Prefix, defaultPrefix)
	fill(&r.SessionTtl, durationpb.New(defaultSessionTTL))
	fill(&r.CommitInterval, durationpb.New(defaultCommitInterval))
	if address, err := netip.ParseAddrPort(r.GetPeer().GetAddress()); err == nil && address.Port() != 0 {
		fill(&r.Peer.Advertise, r.GetPeer().GetAddress())
	}
}

// fillHolds makes management servers hold what they take away, and fills in how.
func fillHolds(sources []*configv1.Source) {
	for _, source := range sources {
		if source.GetConfigSource().GetApiConfigSource() != nil {
			fill(&source.HoldShrinkage, &configv1.HoldShrinkage{})
		}
		if source.GetHoldShrinkage() != nil {
			fill(&source.HoldShrinkage.Share, defaultHoldShare)
			fill(&source.HoldShrinkage.For, durationpb.New(defaultHoldFor))
		}
	}
}

func fill[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}
