package scenario

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
	"hdsd/source/names"
)

// Scenario is what a simulation works on.
type Scenario struct {
	Input    simulate.Input
	Problems []source.Problem // why Input lacks something that the files say
	Ignored  int              // other problems of the sources, whose resources are left out
}

// Read reads the clusters of a configuration's file sources and those of a fleet.
// It gives each checker the capacity that the configuration says. Clusters that
// hdsd would not check are part of the scenario, with the reason.
func Read(c *configv1.Config, fleet *config.Fleet, checkers []health.Checker) Scenario {
	r := catalog.NewRules(c)
	merged, unreadable := readSources(c, r)
	in := Scenario{Problems: unreadable}
	for _, problem := range merged.Problems {
		if !problem.Warning {
			in.Ignored++
		}
	}
	taken := map[string]bool{}
	for _, from := range merged.Clusters {
		taken[from.Name], taken[from.ServiceName] = true, true
		in.Input.Clusters = append(in.Input.Clusters, planned(catalog.Prepare(from, r)))
	}
	for i, group := range fleet.GetClusters() {
		for name := range config.Numbered(group.GetName(), group.GetCount()) {
			if taken[name] {
				field := fmt.Sprintf("clusters[%d].name", i)
				in.Problems = append(in.Problems, source.Problem(fleet.Problem(field, "gives %q, the name of a cluster in a source: choose another", name)))
				break
			}
			in.Input.Clusters = append(in.Input.Clusters, invent(name, group, r))
		}
	}
	claims := make([]float64, len(checkers))
	for i := range checkers {
		claims[i] = checkers[i].Weight
	}
	most := health.MostWeight(claims)
	for _, k := range checkers {
		r.SetCapacity(&k, min(k.Weight, most))
		in.Input.Checkers = append(in.Input.Checkers, k)
	}
	for _, group := range fleet.GetDataPlanes() {
		in.Input.DataPlanes = append(in.Input.DataPlanes, simulate.DataPlanes{Count: int(group.GetCount()), Has: func(cluster string) bool {
			globs := group.GetClusterNameGlobs()
			return len(globs) == 0 || slices.ContainsFunc(globs, func(glob string) bool { return source.Match(glob, cluster) })
		}})
	}
	return in
}

// readSources reads the file sources as a start would, and reports what would
// make the start fail.
func readSources(c *configv1.Config, r *catalog.Rules) (merged *source.Catalog, unreadable []source.Problem) {
	var sets []*source.Set
	for _, from := range c.GetSources() {
		path, watched := config.PathOf(from)
		if err := file.CheckWatchedDirectory(watched); err != nil {
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
		if from.GetResolveNames() {
			set, _ = names.Example(set)
		}
		sets = append(sets, set)
	}
	return source.Merge(nil, sets, r.DefaultHealthChecks), unreadable
}

// planned gives what a plan needs of a cluster.
func planned(k *catalog.Cluster) simulate.Cluster {
	to := simulate.Cluster{
		Name: k.Source.Name, Reach: k.Reach, Redundancy: k.Redundancy, Rate: k.Rate, Burst: k.Burst(),
		Zones: k.Zones, Regions: k.Regions,
	}
	if k.Checked != nil {
		to.Needs = k.Checked.Needs
		place := map[health.Locality]int{}
		for i, hash := range k.Hashes {
			locality := *k.Checked.LocalityOf(i)
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
		if e.Checked() != catalog.None {
			continue
		}
		if _, ok := aside[e.Reason()]; !ok {
			aside[e.Reason()] = len(to.Aside)
			to.Aside = append(to.Aside, simulate.Aside{Reason: e.Reason()})
		}
		to.Aside[aside[e.Reason()]].Endpoints++
	}
	if len(k.Endpoints) == 0 && k.Source.Rejected != "" {
		to.Aside = append(to.Aside, simulate.Aside{Reason: k.Source.Rejected})
	}
	return to
}

// invent makes a cluster of the fleet file. One endpoint in each locality is
// prepared like that of a source, and stands for the others.
func invent(name string, group *configv1.ClusterGroup, r *catalog.Rules) simulate.Cluster {
	localities := group.GetLocalities()
	if len(localities) == 0 {
		localities = []*corev3.Locality{nil}
	}
	size := int(group.GetEndpoints())
	localities = localities[:min(len(localities), size)]
	a := &endpointv3.ClusterLoadAssignment{ClusterName: name}
	first := map[string]int{} // by address of a locality's first endpoint: its locality
	for i, locality := range localities {
		at := address(i)
		first[at.String()] = i
		a.Endpoints = append(a.Endpoints, &endpointv3.LocalityLbEndpoints{Locality: locality, LbEndpoints: []*endpointv3.LbEndpoint{endpointAt(at)}})
	}
	set := &source.Set{Clusters: []*source.Cluster{{Name: name, ServiceName: name, HealthChecks: group.GetHealthChecks(), Assignment: source.EncodeAssignment(a)}}}
	k := catalog.Prepare(source.Merge(nil, []*source.Set{set}, r.DefaultHealthChecks).Clusters[0], r)
	to := planned(k)
	to.Places, to.Aside = nil, nil
	for _, e := range k.Endpoints {
		place, count := simulate.Place{Locality: *e.Locality()}, 0
		for i := first[e.Address()]; i < size; i += len(localities) {
			count++
			if e.Checked() != catalog.None {
				like := e.Key()
				like.Address = address(i).String()
				place.Hashes = append(place.Hashes, like.Hash())
			}
		}
		if e.Checked() != catalog.None {
			to.Places = append(to.Places, place)
		} else {
			to.Aside = append(to.Aside, simulate.Aside{Reason: e.Reason(), Endpoints: count})
		}
	}
	return to
}

// address gives the address with a number; no two are the same.
func address(i int) netip.AddrPort {
	var ip [4]byte
	binary.BigEndian.PutUint32(ip[:], uint32(i)&0xffffff|10<<24)     //nolint:gosec // the port has the rest
	return netip.AddrPortFrom(netip.AddrFrom4(ip), uint16(80+i>>24)) //nolint:gosec // a fleet has no more
}

func endpointAt(at netip.AddrPort) *endpointv3.LbEndpoint {
	return &endpointv3.LbEndpoint{HostIdentifier: &endpointv3.LbEndpoint_Endpoint{Endpoint: &endpointv3.Endpoint{
		Address: &corev3.Address{Address: &corev3.Address_SocketAddress{SocketAddress: &corev3.SocketAddress{
			Address: at.Addr().String(), PortSpecifier: &corev3.SocketAddress_PortValue{PortValue: uint32(at.Port())},
		}}},
	}}}
}
