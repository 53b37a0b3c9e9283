package coordinator

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"slices"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"

	"hdsd/config"
	"hdsd/coordinator/catalog"
	configv1 "hdsd/gen/hdsd/config/v1"
	"hdsd/health"
	"hdsd/simulate"
	"hdsd/source"
	"hdsd/source/file"
)

// Imagined is what a fleet would have to do.
type Imagined struct {
	Input      simulate.Input
	Problems   []source.Problem // why Input is not what the files say
	Overlooked int              // other problems of the sources, which leave out what is bad
}

// Imagine gives the clusters of the configuration's file sources and those of
// the fleet, made ready as a running coordinator does, and the checkers, each
// with the capacity that the configuration gives it. What a coordinator would
// not check is set aside with its reason.
func Imagine(c *configv1.Config, fleet *config.Fleet, checkers []health.Checker) Imagined {
	r := catalog.NewRules(c)
	merged, unreadable := read(c, r)
	im := Imagined{Problems: unreadable}
	for _, problem := range merged.Problems {
		if !problem.Warning {
			im.Overlooked++
		}
	}
	taken := map[string]bool{}
	for _, from := range merged.Clusters {
		taken[from.Name], taken[from.ServiceName] = true, true
		im.Input.Clusters = append(im.Input.Clusters, asInput(catalog.Prepare(from, r)))
	}
	for i, group := range fleet.GetClusters() {
		for name := range config.Numbered(group.GetName(), group.GetCount()) {
			if taken[name] {
				field := fmt.Sprintf("clusters[%d].name", i)
				im.Problems = append(im.Problems, source.Problem(fleet.Problem(field, "gives %q, which a source of the configuration has: choose another", name)))
				break
			}
			im.Input.Clusters = append(im.Input.Clusters, invent(name, group, r))
		}
	}
	for _, k := range checkers {
		r.SetCapacity(&k, k.Weight)
		im.Input.Checkers = append(im.Input.Checkers, k)
	}
	for _, group := range fleet.GetDataPlanes() {
		im.Input.DataPlanes = append(im.Input.DataPlanes, simulate.DataPlanes{Count: int(group.GetCount()), Has: func(cluster string) bool {
			globs := group.GetClusterNameGlobs()
			return len(globs) == 0 || slices.ContainsFunc(globs, func(glob string) bool { return source.Match(glob, cluster) })
		}})
	}
	return im
}

// read reads the file sources as a start would, and says what would have kept
// hdsd from it.
func read(c *configv1.Config, r *catalog.Rules) (merged *source.Catalog, unreadable []source.Problem) {
	var sets []*source.Set
	for _, from := range c.GetSources() {
		path, watched := config.PathOf(from)
		if err := watchable(watched); err != nil {
			unreadable = append(unreadable, source.Problem{File: path, Resource: from.GetName(), Message: err.Error()})
		}
		set, err := file.New(file.Options{Name: from.GetName(), Path: path, WatchedDirectory: watched}).Load()
		if err != nil {
			if why, ok := errors.AsType[*file.Error](err); ok {
				unreadable = append(unreadable, why.Problems...)
			} else {
				unreadable = append(unreadable, source.Problem{File: path, Message: err.Error()})
			}
			continue
		}
		sets = append(sets, set)
	}
	return source.Merge(nil, sets, r.DefaultHealthChecks), unreadable
}

// asInput gives what a plan needs of a cluster.
func asInput(k *catalog.Cluster) simulate.Cluster {
	to := simulate.Cluster{
		Name: k.Source.Name, Reach: k.Reach, Redundancy: k.Redundancy, Rate: k.Rate,
		Zones: k.Zones, Regions: k.Regions,
	}
	if k.Checked != nil {
		to.Needs = k.Checked.Needs
		place := map[health.Locality]int{}
		for i, hash := range k.Hashes {
			locality := k.Checked.Endpoints[i].Key.Locality
			at, ok := place[locality]
			if !ok {
				at = len(to.Places)
				place[locality] = at
				to.Places = append(to.Places, simulate.Place{Locality: locality})
			}
			to.Places[at].Hashes = append(to.Places[at].Hashes, hash)
		}
	}
	aside := map[string]int{}
	for _, e := range k.Endpoints {
		if e.Checked != none {
			continue
		}
		if _, ok := aside[e.Reason]; !ok {
			aside[e.Reason] = len(to.Aside)
			to.Aside = append(to.Aside, simulate.Aside{Reason: e.Reason})
		}
		to.Aside[aside[e.Reason]].Endpoints++
	}
	if len(k.Endpoints) == 0 && k.Source.Quarantine != "" {
		to.Aside = append(to.Aside, simulate.Aside{Reason: k.Source.Quarantine})
	}
	return to
}

// invent makes a cluster that does not exist. One endpoint in each locality is
// prepared as that of a source would be; the others are like it.
func invent(name string, group *configv1.ClusterGroup, r *catalog.Rules) simulate.Cluster {
	localities := group.GetLocalities()
	if len(localities) == 0 {
		localities = []*corev3.Locality{nil}
	}
	size := int(group.GetEndpoints())
	localities = localities[:min(len(localities), size)]
	a := &endpointv3.ClusterLoadAssignment{ClusterName: name}
	first := map[string]int{} // of each locality, by address
	for i, locality := range localities {
		at := addressNo(i)
		first[at.String()] = i
		a.Endpoints = append(a.Endpoints, &endpointv3.LocalityLbEndpoints{Locality: locality, LbEndpoints: []*endpointv3.LbEndpoint{endpointAt(at)}})
	}
	set := &source.Set{Clusters: []*source.Cluster{{Name: name, ServiceName: name, HealthChecks: group.GetHealthChecks(), Assignment: a}}}
	k := catalog.Prepare(source.Merge(nil, []*source.Set{set}, r.DefaultHealthChecks).Clusters[0], r)
	to := asInput(k)
	to.Places, to.Aside = nil, nil
	for _, e := range k.Endpoints {
		place, count := simulate.Place{Locality: e.Key.Locality}, 0
		for i := first[e.Key.Address]; i < size; i += len(localities) {
			count++
			if e.Checked != none {
				e.Key.Address = addressNo(i).String()
				place.Hashes = append(place.Hashes, e.Key.Hash())
			}
		}
		if e.Checked != none {
			to.Places = append(to.Places, place)
		} else {
			to.Aside = append(to.Aside, simulate.Aside{Reason: e.Reason, Endpoints: count})
		}
	}
	return to
}

// addressNo gives one of many addresses, each different.
func addressNo(i int) netip.AddrPort {
	var ip [4]byte
	binary.BigEndian.PutUint32(ip[:], uint32(i)&0xffffff|10<<24)     //nolint:gosec // what is cut off is in the port
	return netip.AddrPortFrom(netip.AddrFrom4(ip), uint16(80+i>>24)) //nolint:gosec // a fleet has no more
}

func endpointAt(at netip.AddrPort) *endpointv3.LbEndpoint {
	return &endpointv3.LbEndpoint{HostIdentifier: &endpointv3.LbEndpoint_Endpoint{Endpoint: &endpointv3.Endpoint{
		Address: &corev3.Address{Address: &corev3.Address_SocketAddress{SocketAddress: &corev3.SocketAddress{
			Address: at.Addr().String(), PortSpecifier: &corev3.SocketAddress_PortValue{PortValue: uint32(at.Port())},
		}}},
	}}}
}
