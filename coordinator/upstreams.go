package coordinator

import (
	"cmp"
	"slices"
	"sync/atomic"
	"time"

	adminv3 "github.com/envoyproxy/go-control-plane/envoy/admin/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/protobuf/types/known/anypb"

	"hdsd/api"
	"hdsd/csds"
	"hdsd/source/xds"
)

// selfNode is hdsd as its upstreams know it.
func selfNode(id, version string) *corev3.Node {
	node := &corev3.Node{Id: id, UserAgentName: "hdsd"}
	if version != "" {
		node.UserAgentVersionType = &corev3.Node_UserAgentVersion{UserAgentVersion: version}
	}
	return node
}

// upstreams are the management servers that hdsd is a client of, as they are
// asked about from any goroutine.
type upstreams struct {
	node    *corev3.Node
	sources atomic.Pointer[sources]
}

// each calls visit with what each knows now, by the name of its source.
func (u *upstreams) each(visit func(name string, known xds.Status)) {
	all := u.sources.Load()
	if all == nil {
		return
	}
	for _, one := range *all {
		if one.upstream != nil {
			visit(one.name, one.upstream.Status())
		}
	}
}

// want has an upstream asked for assignments, too. Of another source, nothing
// can be asked.
func (u *upstreams) want(name string, assignments []string) {
	for _, one := range *u.sources.Load() {
		if one.name == name && one.upstream != nil {
			one.upstream.Want(assignments)
		}
	}
}

// pending tells whether an upstream has yet to answer about what it was asked for
// others.
func (u *upstreams) pending(name string) bool {
	return slices.ContainsFunc(*u.sources.Load(), func(one *opened) bool {
		return one.name == name && one.upstream != nil && one.upstream.Pending()
	})
}

// clients are the upstreams as rows among the clients.
func (u *upstreams) clients() (all []api.Client) {
	u.each(func(name string, known xds.Status) {
		for i := range known.Types {
			t := &known.Types[i]
			c := api.Client{
				ID: name, Kind: api.KindUpstream, TypeURL: t.TypeURL, Connected: t.Connected,
				Resources: len(t.Resources), LastAck: t.LastAck, LastError: lastError(t),
			}
			for j := range t.Resources {
				switch state := t.Resources[j].ClientStatus; {
				case state == adminv3.ClientResourceStatus_NACKED:
					c.Error++
				case t.Connected && (state == adminv3.ClientResourceStatus_ACKED || state == adminv3.ClientResourceStatus_DOES_NOT_EXIST):
					c.Synced++
				default:
					c.Stale++
				}
			}
			all = append(all, c)
		}
	})
	return all
}

// lastError is what is wrong with an upstream now: it is away, or it says
// something that is refused.
func lastError(t *xds.TypeStatus) string {
	if t.Connected {
		return cmp.Or(t.Rejected, t.LastError)
	}
	return cmp.Or(t.LastError, t.Rejected)
}

// Clients implements csds.Source: hdsd itself, once for each upstream.
func (u *upstreams) Clients(yield func(csds.Client) bool) {
	ended := false
	u.each(func(name string, known xds.Status) {
		ended = ended || !yield(csds.Client{Node: u.node, Scope: name, Resources: func(yield func(csds.Resource) bool) {
			for i := range known.Types {
				for j := range known.Types[i].Resources {
					if !yield(taken(known.Types[i].TypeURL, &known.Types[i].Resources[j])) {
						return
					}
				}
			}
		}})
	})
}

// taken gives the status of what hdsd took from an upstream, or asks it for.
func taken(typeURL string, r *xds.Resource) csds.Resource {
	out := csds.Resource{
		TypeURL: typeURL, Name: r.Name, Version: r.Version, Updated: r.LastUpdated, Client: r.ClientStatus,
		Body: func() *anypb.Any { return r.Config },
	}
	if e := r.Error; e != nil {
		out.Error = &csds.Error{
			Details: e.GetDetails(), Version: e.GetVersionInfo(), Time: e.GetLastUpdateAttempt().AsTime(),
			Body: e.GetFailedConfiguration,
		}
	}
	return out
}

// What is exported of upstreams. None of it is labelled: the clients have it by
// source.
var (
	upstreamCount     = prometheus.NewDesc("hdsd_upstreams", "Management servers among the sources.", nil, nil)
	upstreamConnected = prometheus.NewDesc("hdsd_upstreams_connected", "Management servers among the sources that answer.", nil, nil)
	upstreamAge       = prometheus.NewDesc("hdsd_upstream_age_seconds", "How long ago the management server was lost that has been gone for the longest, while what it said stays in use (after a restart without it, since it was there last); 0 while all answer.", nil, nil)
	upstreamFullness  = prometheus.NewDesc("hdsd_upstream_fullness_ratio", "How much of what limits let it have the management server has that is nearest to them, in clusters, endpoints or bytes: 1 is all, and more is refused.", nil, nil)
	upstreamRefused   = prometheus.NewDesc("hdsd_upstream_resources_refused", "Resources of management servers of which the latest update is refused, so that what they were before stays in use.", nil, nil)
)

// Describe implements prometheus.Collector.
func (u *upstreams) Describe(to chan<- *prometheus.Desc) {
	for _, each := range []*prometheus.Desc{upstreamCount, upstreamConnected, upstreamAge, upstreamFullness, upstreamRefused} {
		to <- each
	}
}

// Collect implements prometheus.Collector.
func (u *upstreams) Collect(to chan<- prometheus.Metric) {
	var count, connected, refused int
	var age time.Duration
	var fullness float64
	u.each(func(_ string, known xds.Status) {
		count++
		fullness = max(fullness, known.Fullness)
		answers := true
		for i := range known.Types {
			t := &known.Types[i]
			if !t.Connected {
				answers = false
			}
			if !t.Connected && !t.Since.IsZero() {
				age = max(age, time.Since(t.Since))
			}
			for j := range t.Resources {
				refused += int(flag(t.Resources[j].ClientStatus == adminv3.ClientResourceStatus_NACKED))
			}
		}
		connected += int(flag(answers))
	})
	gauge := func(of *prometheus.Desc, value float64) {
		to <- prometheus.MustNewConstMetric(of, prometheus.GaugeValue, value)
	}
	gauge(upstreamCount, float64(count))
	gauge(upstreamConnected, float64(connected))
	gauge(upstreamAge, age.Seconds())
	gauge(upstreamFullness, fullness)
	gauge(upstreamRefused, float64(refused))
}
