package envoy

import (
	"context"

	"hdsd/bootstrap"
	"hdsd/health"
)

// Checker describes an Envoy that checks endpoints.
type Checker struct {
	ID       string // node id
	HDS      string // host:port of the HDS server
	Binary   string // path of the Envoy
	Locality health.Locality
	Metadata map[string]string
	Args     []string // further arguments
	Folder   string   // working folder; default: a folder of its own
}

// DataPlane describes an Envoy that serves traffic.
type DataPlane struct {
	ID       string // node id
	ADS      string // host:port of the ADS server
	Binary   string // path of the Envoy
	Locality health.Locality
	Delta    bool     // delta xDS, else state of the world
	CDS      bool     // take clusters over ADS; else the bootstrap has those in Clusters
	Clusters []string // EDS clusters with endpoints over ADS
	Listen   string   // host:port of the listener; default: a free one
	Route    string   // the cluster that the listener routes to; default: the first of Clusters
	Args     []string // further arguments
}

// anyPort lets each Envoy choose the port of its admin interface.
const anyPort = "127.0.0.1:0"

// StartChecker starts an Envoy that takes its health checks from an HDS server. It
// returns when the Envoy runs, connected or not.
func StartChecker(ctx context.Context, c Checker) (*Process, error) {
	text, err := bootstrap.Checker{
		Node:   bootstrap.Node{ID: c.ID, Locality: c.Locality, Metadata: c.Metadata, Admin: anyPort},
		Server: bootstrap.Server{Address: c.HDS},
	}.YAML()
	if err != nil {
		return nil, err
	}
	return launch(ctx, c.Binary, c.ID, c.Folder, text, c.Args...)
}

// StartDataPlane starts an Envoy that takes endpoints over ADS and routes
// HTTP requests to Process.Listen to one cluster. It returns when the Envoy
// runs, connected or not.
func StartDataPlane(ctx context.Context, d DataPlane) (*Process, error) {
	if d.Route == "" && len(d.Clusters) > 0 {
		d.Route = d.Clusters[0]
	}
	if d.CDS {
		d.Clusters = nil
	}
	if d.Listen == "" {
		var err error
		if d.Listen, err = FreeAddress(); err != nil {
			return nil, err
		}
	}
	text, err := bootstrap.Client{
		Node:   bootstrap.Node{ID: d.ID, Locality: d.Locality, Admin: anyPort},
		Server: bootstrap.Server{Address: d.ADS},
		Delta:  d.Delta, Clusters: d.Clusters, Listen: d.Listen, Route: d.Route,
	}.YAML()
	if err != nil {
		return nil, err
	}
	p, err := launch(ctx, d.Binary, d.ID, "", text, d.Args...)
	if err != nil {
		return nil, err
	}
	p.Listen = d.Listen
	return p, nil
}

// Start runs an Envoy with a bootstrap that lets it choose its admin port. It returns
// when the Envoy runs, connected or not.
func Start(ctx context.Context, binary, id string, bootstrap []byte) (*Process, error) {
	return launch(ctx, binary, id, "", bootstrap)
}
