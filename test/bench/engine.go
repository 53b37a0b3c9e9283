package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"hdsd/internal/demo/envoy"
	"hdsd/test/etcd"
)

// engine is a cluster of three etcd servers, which sync each write to the disk of temporary files.
type engine struct {
	all     []*process
	clients []string // addresses for clients, by server
	metrics []string // URLs of their metrics
}

const engineServers = 3

// newEngine starts one with nothing in it.
func newEngine(dir string) (*engine, error) {
	binary, err := etcd.Build()
	if err != nil {
		return nil, err
	}
	if dir, err = os.MkdirTemp(dir, "etcd-"); err != nil {
		return nil, err
	}
	e := &engine{}
	var peers, cluster []string
	for i := range engineServers {
		var addresses [3]string
		for k := range addresses {
			if addresses[k], err = envoy.FreeAddress(); err != nil {
				return nil, err
			}
		}
		e.clients, e.metrics = append(e.clients, addresses[0]), append(e.metrics, "http://"+addresses[1])
		peers = append(peers, addresses[2])
		cluster = append(cluster, fmt.Sprintf("etcd-%d=http://%s", i, addresses[2]))
	}
	for i := range engineServers {
		name := fmt.Sprintf("etcd-%d", i)
		p, err := launch(filepath.Join(dir, name+".log"), nil, binary, "--name", name, "--data-dir", filepath.Join(dir, name), "--log-level", "error",
			"--listen-client-urls", "http://"+e.clients[i], "--advertise-client-urls", "http://"+e.clients[i], "--listen-metrics-urls", e.metrics[i],
			"--listen-peer-urls", "http://"+peers[i], "--initial-advertise-peer-urls", "http://"+peers[i], "--initial-cluster", strings.Join(cluster, ","))
		if err != nil {
			e.close()
			return nil, err
		}
		e.all = append(e.all, p)
	}
	if err := e.await(); err != nil {
		e.close()
		return nil, err
	}
	return e, nil
}

// await waits until all servers answer.
func (e *engine) await() error {
	for i, url := range e.metrics {
		err := until("etcd to be ready", 10*time.Millisecond, func() (bool, error) {
			select {
			case <-e.all[i].exited:
				return false, fmt.Errorf("etcd ended; see %s", e.all[i].log)
			default:
			}
			answer, err := http.Get(url + "/health")
			if err != nil {
				return false, nil // it does not listen yet
			}
			return answer.StatusCode == http.StatusOK, answer.Body.Close()
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func (e *engine) close() {
	for _, p := range e.all {
		p.kill()
	}
}

// processor is the processor time of all servers so far.
func (e *engine) processor() (total time.Duration, err error) {
	var errs []error
	for _, p := range e.all {
		used, err := p.processor()
		total, errs = total+used, append(errs, err)
	}
	return total, errors.Join(errs...)
}

// metric is a series without labels of one server.
func (e *engine) metric(ctx context.Context, server int, name string) (float64, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, e.metrics[server]+"/metrics", http.NoBody)
	if err != nil {
		return 0, err
	}
	answer, err := plain.Do(request)
	if err != nil {
		return 0, err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		return 0, err
	}
	_, rest, found := strings.Cut(string(text), "\n"+name+" ")
	if !found {
		return 0, fmt.Errorf("etcd has no metric %s", name)
	}
	value, _, _ := strings.Cut(rest, "\n")
	return strconv.ParseFloat(value, 64)
}

// writes is how many writes the cluster has committed so far: all entries of etcd's own log.
func (e *engine) writes() (float64, error) {
	return e.metric(context.Background(), 0, "etcd_server_proposals_committed_total")
}

// syncs is how often the first server has synced its log so far, and how many seconds that took.
func (e *engine) syncs() (count, seconds float64, err error) {
	const metric = "etcd_disk_wal_fsync_duration_seconds"
	if count, err = e.metric(context.Background(), 0, metric+"_count"); err == nil {
		seconds, err = e.metric(context.Background(), 0, metric+"_sum")
	}
	return count, seconds, err
}
