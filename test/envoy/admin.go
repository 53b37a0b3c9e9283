package envoy

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net"
	"net/url"
	"strconv"
)

// Host is a data plane's view of one endpoint.
type Host struct {
	Address        string // ip:port, [ip6]:port or a pipe's path
	EDSHealth      string // HEALTHY (UNKNOWN, too), UNHEALTHY (TIMEOUT, too), DRAINING or DEGRADED, from EDS
	FailedActive   bool   // it gets no traffic because of this Envoy's own check
	Priority       uint32
	Region, Zone   string
	Weight         uint32
	PendingRemoval bool
}

// Failed reports whether the endpoint gets no traffic (unless the Envoy is in panic).
func (h Host) Failed() bool {
	return h.FailedActive || h.EDSHealth == "UNHEALTHY" || h.EDSHealth == "DRAINING"
}

func (p *Process) getJSON(path string, into any) error {
	body, err := p.Get(path)
	if err == nil {
		err = json.Unmarshal(body, into)
	}
	if err != nil {
		return fmt.Errorf("Envoy %s: %w", p.ID, err)
	}
	return nil
}

// TryStats returns the counters and gauges whose names match a regular expression.
func (p *Process) TryStats(filter string) (map[string]uint64, error) {
	var answer struct {
		Stats []struct {
			Name  string
			Value json.RawMessage
		}
	}
	if err := p.getJSON("/stats?format=json&filter="+url.QueryEscape(filter), &answer); err != nil {
		return nil, err
	}
	stats := map[string]uint64{}
	for _, s := range answer.Stats {
		if value, err := strconv.ParseUint(string(s.Value), 10, 64); err == nil {
			stats[s.Name] = value
		}
	}
	return stats, nil
}

// TryClusters returns the Envoy's view of each endpoint, by cluster and address. (An
// address that is twice in a cluster is there once.)
func (p *Process) TryClusters() (map[string]map[string]Host, error) {
	var answer struct {
		ClusterStatuses []struct {
			Name         string       `json:"name"`
			HostStatuses []hostStatus `json:"host_statuses"`
		} `json:"cluster_statuses"`
	}
	if err := p.getJSON("/clusters?format=json", &answer); err != nil {
		return nil, err
	}
	clusters := map[string]map[string]Host{}
	for _, c := range answer.ClusterStatuses {
		hosts := map[string]Host{}
		for i := range c.HostStatuses {
			h := c.HostStatuses[i].host()
			hosts[h.Address] = h
		}
		clusters[c.Name] = hosts
	}
	return clusters, nil
}

type hostStatus struct {
	Address struct {
		SocketAddress *struct {
			Address string `json:"address"`
			Port    uint32 `json:"port_value"`
		} `json:"socket_address"`
		Pipe struct {
			Path string `json:"path"`
		} `json:"pipe"`
	} `json:"address"`
	HealthStatus struct {
		EDS            string `json:"eds_health_status"`
		FailedActive   bool   `json:"failed_active_health_check"`
		PendingRemoval bool   `json:"pending_dynamic_removal"`
	} `json:"health_status"`
	Weight   uint32 `json:"weight"`
	Priority uint32 `json:"priority"`
	Locality struct {
		Region string `json:"region"`
		Zone   string `json:"zone"`
	} `json:"locality"`
}

func (s *hostStatus) host() Host {
	h := Host{
		Address: s.Address.Pipe.Path, EDSHealth: cmp.Or(s.HealthStatus.EDS, "UNKNOWN"),
		FailedActive:   s.HealthStatus.FailedActive,
		PendingRemoval: s.HealthStatus.PendingRemoval, Priority: s.Priority, Weight: s.Weight,
		Region: s.Locality.Region, Zone: s.Locality.Zone,
	}
	if a := s.Address.SocketAddress; a != nil {
		h.Address = net.JoinHostPort(a.Address, strconv.Itoa(int(a.Port)))
	}
	return h
}
