package scenario

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"slices"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"

	"hdsd/catalog"
	"hdsd/config"
	configv1 "hdsd/gen/hdsd/config/v1"
	"hdsd/health"
	"hdsd/simulate"
	"hdsd/source"
	"hdsd/source/file"
	"hdsd/source/names"
)

// Scenario is the input of a simulation.
type Scenario struct {
	Input    simulate.Input
	Problems []source.Problem // reasons why Input lacks something in the files
	Ignored  int              // other problems of the sources, whose resources are left out
}

// Read reads the clusters of a configuration's file sources and those of a fleet. It gives each
// checker its configured capacity. Clusters that hdsd would not check are part of the scenario,
// with the reason.
func Read(c *configv1.Config, fleet *config.Fleet, checkers []health.Checker) Scenario {
	r := catalog.NewRules(c)
	merged, unreadable := readSources(c, r)
	s := Scenario{Problems: unreadable}
	for _, problem := range merged.Problems {
		if !problem.Warning {
			s.Ignored++
		}
	}
	used := map[string]bool{}
	for _, cluster := range merged.Clusters {
		used[cluster.Name], used[cluster.ServiceName] = true, true
		s.Input.Clusters = append(s.Input.Clusters, planned(catalog.Prepare(cluster, r)))
	}
	for i, group := range fleet.GetClusters() {
		for name := range config.Numbered(group.GetName(), group.GetCount()) {
			if used[name] {
				field := fmt.Sprintf("clusters[%d].name", i)
				s.Problems = append(s.Problems, source.Problem(fleet.Problem(field, "gives %q, the name of a cluster in a source: choose another", name)))
				break
			}
			s.Input.Clusters = append(s.Input.Clusters, invent(name, group, r))
		}
	}
	claims := make([]float64, len(checkers))
	for i := range checkers {
		claims[i] = checkers[i].Weight
	}
	maxWeight := health.MostWeight(claims)
	for _, k := range checkers {
		r.SetCapacity(&k, min(k.Weight, maxWeight))
		s.Input.Checkers = append(s.Input.Checkers, k)
	}
	for _, group := range fleet.GetDataPlanes() {
		s.Input.DataPlanes = append(s.Input.DataPlanes, simulate.DataPlanes{Count: int(group.GetCount()), Uses: func(cluster string) bool {
			globs := group.GetClusterNameGlobs()
			return len(globs) == 0 || slices.ContainsFunc(globs, func(glob string) bool { return source.Match(glob, cluster) })
		}})
	}
	return s
}

// readSources reads the file sources as a start would, and reports errors that would make the
// start fail.
func readSources(c *configv1.Config, r *catalog.Rules) (merged *source.Catalog, unreadable []source.Problem) {
	var sets []*source.Set
	for _, src := range c.GetSources() {
		path, watched := config.PathOf(src)
		if err := file.CheckWatchedDirectory(watched); err != nil {
			unreadable = append(unreadable, source.Problem{File: path, Resource: src.GetName(), Message: err.Error()})
		}
		set, err := file.New(file.Options{Name: src.GetName(), Path: path, WatchedDirectory: watched}).Load()
		if err != nil {
			if fileErr, ok := errors.AsType[*file.Error](err); ok {
				unreadable = append(unreadable, fileErr.Problems...)
			} else {
				unreadable = append(unreadable, source.Problem{File: path, Message: err.Error()})
			}
			continue
		}
		if src.GetResolveNames() {
			set, _ = names.Example(set)
		}
		sets = append(sets, set)
	}
	return source.Merge(nil, sets, r.DefaultHealthChecks), unreadable
}

// planned returns a cluster as needed by a plan.
func planned(k *catalog.Cluster) simulate.Cluster {
	cluster := simulate.Cluster{
		Name: k.Source.Name, Reach: k.Reach, Redundancy: k.Redundancy, Rate: k.Rate, Burst: k.Burst(),
		Zones: k.Zones, Regions: k.Regions,
	}
	if k.Checked != nil {
		cluster.Needs = k.Checked.Needs
		place := map[health.Locality]int{}
		for i, hash := range k.Hashes {
			locality := *k.Checked.LocalityOf(i)
			index, ok := place[locality]
			if !ok {
				index = len(cluster.Places)
				place[locality] = index
				cluster.Places = append(cluster.Places, simulate.Place{Locality: locality})
			}
			cluster.Places[index].Hashes = append(cluster.Places[index].Hashes, hash)
		}
	}
	aside := map[string]int{}
	for _, e := range k.Endpoints {
		if e.Checked() != catalog.None {
			continue
		}
		if _, ok := aside[e.Reason()]; !ok {
			aside[e.Reason()] = len(cluster.Aside)
			cluster.Aside = append(cluster.Aside, simulate.Aside{Reason: e.Reason()})
		}
		cluster.Aside[aside[e.Reason()]].Endpoints++
	}
	if len(k.Endpoints) == 0 && k.Source.Rejected != "" {
		cluster.Aside = append(cluster.Aside, simulate.Aside{Reason: k.Source.Rejected})
	}
	return cluster
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
		addr := address(i)
		first[addr.String()] = i
		a.Endpoints = append(a.Endpoints, &endpointv3.LocalityLbEndpoints{Locality: locality, LbEndpoints: []*endpointv3.LbEndpoint{endpointAt(addr)}})
	}
	set := &source.Set{Clusters: []*source.Cluster{{Name: name, ServiceName: name, HealthChecks: group.GetHealthChecks(), Assignment: source.EncodeAssignment(a)}}}
	k := catalog.Prepare(source.Merge(nil, []*source.Set{set}, r.DefaultHealthChecks).Clusters[0], r)
	cluster := planned(k)
	cluster.Places, cluster.Aside = nil, nil
	for _, e := range k.Endpoints {
		place, count := simulate.Place{Locality: *e.Locality()}, 0
		for i := first[e.Address()]; i < size; i += len(localities) {
			count++
			if e.Checked() != catalog.None {
				template := e.Key()
				template.Address = address(i).String()
				place.Hashes = append(place.Hashes, template.Hash())
			}
		}
		if e.Checked() != catalog.None {
			cluster.Places = append(cluster.Places, place)
		} else {
			cluster.Aside = append(cluster.Aside, simulate.Aside{Reason: e.Reason(), Endpoints: count})
		}
	}
	return cluster
}

// address returns the address for a number; no two are the same.
func address(i int) netip.AddrPort {
	var ip [4]byte
	binary.BigEndian.PutUint32(ip[:], uint32(i)&0xffffff|10<<24)     //nolint:gosec // the port has the rest
	return netip.AddrPortFrom(netip.AddrFrom4(ip), uint16(80+i>>24)) //nolint:gosec // a fleet has no more
}

func endpointAt(addr netip.AddrPort) *endpointv3.LbEndpoint {
	return &endpointv3.LbEndpoint{HostIdentifier: &endpointv3.LbEndpoint_Endpoint{Endpoint: &endpointv3.Endpoint{
		Address: &corev3.Address{Address: &corev3.Address_SocketAddress{SocketAddress: &corev3.SocketAddress{
			Address: addr.Addr().String(), PortSpecifier: &corev3.SocketAddress_PortValue{PortValue: uint32(addr.Port())},
		}}},
	}}}
}
