package demo

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"

	"hdsd/internal/demo/envoy"
)

// dataPlane takes the health by EDS.
type dataPlane interface {
	name() string
	// published returns the health of an endpoint from EDS, as far as the data plane shows
	// it: an Envoy shows UNKNOWN as HEALTHY and TIMEOUT as UNHEALTHY.
	published(address string) string
	traffic() (sent, failed int) // requests sent through it, if it routes
}

// envoyPlane is a real Envoy.
type envoyPlane struct {
	process *envoy.Process
	client  http.Client
}

func (p *envoyPlane) name() string { return "data plane " + p.process.ID + " (Envoy)" }

func (p *envoyPlane) published(address string) string {
	var view struct {
		Clusters []struct {
			Name  string `json:"name"`
			Hosts []struct {
				Address struct {
					Socket struct {
						Port int `json:"port_value"`
					} `json:"socket_address"`
				} `json:"address"`
				Health struct {
					EDS string `json:"eds_health_status"`
				} `json:"health_status"`
			} `json:"host_statuses"`
		} `json:"cluster_statuses"`
	}
	answer, err := p.process.Get("/clusters?format=json")
	if err != nil || json.Unmarshal(answer, &view) != nil {
		return ""
	}
	for _, c := range view.Clusters {
		for _, h := range c.Hosts {
			if c.Name == clusterName && address == fmt.Sprintf("127.0.0.1:%d", h.Address.Socket.Port) {
				return h.Health.EDS
			}
		}
	}
	return ""
}

// planes are the data planes of all replicas, one each. Those of a replica that is gone do not count.
type planes []*replicaPlane

type replicaPlane struct {
	dataPlane
	replica *coordinator
	aside   bool // its replica is gone
}

func (p planes) name() string {
	count := 0
	for _, plane := range p {
		if !plane.aside {
			count++
		}
	}
	if count < len(p) {
		return fmt.Sprintf("each data plane of the other %d replicas", count)
	}
	return "each of the data planes"
}

// published returns the health of an endpoint, if all data planes have the same.
func (p planes) published(address string) (health string) {
	for _, plane := range p {
		if plane.aside {
			continue
		}
		other := plane.published(address)
		if health != "" && other != health {
			return health + " and " + other
		}
		health = other
	}
	return health
}

func (p planes) traffic() (sent, failed int) {
	for _, plane := range p {
		if !plane.aside {
			s, f := plane.traffic()
			sent, failed = sent+s, failed+f
		}
	}
	return sent, failed
}

const requests = 20

func (p *envoyPlane) traffic() (sent, failed int) {
	for range requests {
		response, err := p.client.Get("http://" + p.process.Listen + "/")
		if err != nil {
			failed++
			continue
		}
		_, _ = io.Copy(io.Discard, response.Body) // only the status counts
		response.Body.Close()
		if response.StatusCode != http.StatusOK {
			failed++
		}
	}
	return requests, failed
}
