package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"hdsd/internal/demo/envoy"
	"hdsd/test/scale"
)

// patience is how long anything may take.
const patience = 3 * time.Minute

// hdsd is a coordinator's process.
type hdsd struct {
	*process
	binary, dir, grpc, http string
}

// newHDSD prepares a coordinator of a world, which is not started. The interval is that of
// reports; extra is more configuration.
func newHDSD(dir, binary string, w *scale.World, extra string) (*hdsd, error) {
	return newNode(dir, binary, "hdsd-bench", w, extra)
}

// newNode is newHDSD for a coordinator with an id of its own.
func newNode(dir, binary, id string, w *scale.World, extra string) (*hdsd, error) {
	dir, err := os.MkdirTemp(dir, "hdsd-")
	if err != nil {
		return nil, err
	}
	h := &hdsd{binary: binary, dir: dir}
	for _, to := range []*string{&h.grpc, &h.http} {
		if *to, err = envoy.FreeAddress(); err != nil {
			return nil, err
		}
	}
	config := fmt.Sprintf("node_id: %s\ngrpc: {address: %q}\nhttp: {address: %q}\ndata_dir: data\n"+
		"sources: [{name: local, config_source: {path_config_source: {path: clusters.yaml}}}]\n%s\n", id, h.grpc, h.http, extra)
	if err := os.WriteFile(filepath.Join(dir, "clusters.yaml"), []byte(w.File()), 0o600); err != nil {
		return nil, err
	}
	return h, os.WriteFile(filepath.Join(dir, "hdsd.yaml"), []byte(config), 0o600)
}

// start runs it, and waits until it is ready.
func (h *hdsd) start() error {
	p, err := launch(filepath.Join(h.dir, "hdsd.log"), nil, h.binary, "serve", "-c", filepath.Join(h.dir, "hdsd.yaml"))
	if err != nil {
		return err
	}
	h.process = p
	return until("hdsd to be ready", 5*time.Millisecond, func() (bool, error) {
		select {
		case <-p.exited:
			return false, fmt.Errorf("hdsd ended; see %s", p.log)
		default:
		}
		answer, err := http.Get("http://" + h.http + "/readyz")
		if err != nil {
			return false, nil // it does not listen yet
		}
		return answer.StatusCode == http.StatusOK, answer.Body.Close()
	})
}

// plain asks as curl does, and zipped as browsers do, which decompress what they get.
var plain, zipped = &http.Client{Transport: &http.Transport{DisableCompression: true}}, http.DefaultClient

// get asks over REST.
func (h *hdsd) get(path string) ([]byte, error) { return h.getBy(plain, path) }

func (h *hdsd) getBy(client *http.Client, path string) ([]byte, error) {
	answer, err := client.Get("http://" + h.http + path)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	var to bytes.Buffer
	if answer.ContentLength > 0 {
		to.Grow(int(answer.ContentLength) + bytes.MinRead) // or it would take longer to read than to answer
	}
	_, err = to.ReadFrom(answer.Body)
	body := to.Bytes()
	if err == nil && answer.StatusCode != http.StatusOK {
		err = fmt.Errorf("GET %s: %s: %.200s", path, answer.Status, body)
	}
	return body, err
}

// metric is a series by its name, with its labels.
func (h *hdsd) metric(name string) (float64, error) {
	text, err := h.get("/metrics")
	if err != nil {
		return 0, err
	}
	_, rest, found := strings.Cut(string(text), "\n"+name+" ")
	if !found {
		return 0, fmt.Errorf("there is no metric %s", name)
	}
	value, _, _ := strings.Cut(rest, "\n")
	return strconv.ParseFloat(value, 64)
}

// healthy is how many endpoints have the verdict that they are up.
func (h *hdsd) healthy() (n int, err error) {
	body, err := h.get("/v1/status")
	if err != nil {
		return 0, err
	}
	var answer struct{ Endpoints struct{ Healthy int } }
	err = json.Unmarshal(body, &answer)
	return answer.Endpoints.Healthy, err
}

var errPatience = errors.New("took too long")

// until waits for a condition, which it looks at so often.
func until(what string, every time.Duration, condition func() (bool, error)) error {
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(every) {
		if done, err := condition(); err != nil || done {
			return err
		}
	}
	return fmt.Errorf("waiting for %s: %w", what, errPatience)
}
