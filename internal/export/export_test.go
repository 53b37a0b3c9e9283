package export

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/protobuf/types/known/timestamppb"

	hdsdv1 "hdsd/gen/hdsd/v1"
)

var noon = time.Date(2026, 1, 2, 12, 0, 0, 123_456_789, time.UTC)

func change(n int) *hdsdv1.Transition {
	return &hdsdv1.Transition{
		Time: timestamppb.New(noon.Add(time.Duration(n) * time.Second)), Cluster: fmt.Sprint("web-", n%3), Address: "10.0.0.1:80",
		Locality: &corev3.Locality{Region: "eu", Zone: "a"}, From: corev3.HealthStatus_HEALTHY, To: corev3.HealthStatus_UNHEALTHY, Reason: "überall, \"2 of 3\"",
		Observations: []*hdsdv1.Observation{
			{Checker: "c1", Status: corev3.HealthStatus_UNHEALTHY, HttpStatusCode: new(uint32(503)), Time: timestamppb.New(noon)},
			{Checker: "c2", Status: corev3.HealthStatus_TIMEOUT, Disbelieved: "warming up"},
		},
	}
}

// reading is a program of another author, with another implementation of Parquet.
const reading = `
import sys, pyarrow.parquet as pq
t = pq.read_table(sys.argv[1])
print(t.num_rows, pq.ParquetFile(sys.argv[1]).num_row_groups)
print(" ".join(f"{f.name}:{f.type}" for f in t.schema))
for row in t.slice(max(t.num_rows - 1, 0)).to_pylist():
    row["time"] = row["time"].isoformat()
    print(row)
`

// pyarrow is its version.
const pyarrow = "26.0.1"

// python returns one that has pyarrow. It installs it into the repository's cache.
func python(t *testing.T) string {
	t.Helper()
	_, here, _, _ := runtime.Caller(0)
	venv := filepath.Join(filepath.Dir(here), "..", "..", ".cache", "pyarrow-"+pyarrow)
	path := filepath.Join(venv, "bin", "python")
	if exec.Command(path, "-c", "import pyarrow.parquet").Run() == nil {
		return path
	}
	for _, step := range [][]string{
		{"python3", "-m", "venv", venv},
		{filepath.Join(venv, "bin", "pip"), "install", "-q", "--disable-pip-version-check", "pyarrow==" + pyarrow},
	} {
		if out, err := exec.Command(step[0], step[1:]...).CombinedOutput(); err != nil {
			t.Fatalf("%v: %v: %s", step, err, out)
		}
	}
	return path
}

// TestAnotherProgramReadsIt: types, values, what is absent, and several row groups.
func TestAnotherProgramReadsIt(t *testing.T) {
	program := python(t)
	read := func(name string, write func(io.Writer) error) string {
		t.Helper()
		file, err := os.Create(filepath.Join(t.TempDir(), name))
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close()
		if err := write(file); err != nil {
			t.Fatal(err)
		}
		out, err := exec.Command(program, "-c", reading, file.Name()).CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		return string(out)
	}
	got := read("transitions.parquet", func(to io.Writer) error {
		w := NewTransitions(to)
		for n := range groupRows + 1 {
			if err := w.Write(change(n)); err != nil {
				return err
			}
		}
		return w.Close()
	})
	for _, want := range []string{
		fmt.Sprintf("%d 2\n", groupRows+1),
		"time:timestamp[us, tz=UTC] cluster:", "observations:list<element: struct<checker: ", "http_status_code: int32",
		"2026-01-02T16:33:04.123456+00:00", "überall, \"2 of 3\"", "'to': 'UNHEALTHY'", "'http_status_code': 503", "'http_status_code': None", "'disbelieved': 'warming up'", "'cluster': 'web-1'",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is missing from %s", want, got)
		}
	}
	got = read("events.parquet", func(to io.Writer) error {
		w := NewEvents(to)
		if err := w.Write(&hdsdv1.Event{Time: timestamppb.New(noon), Kind: hdsdv1.Event_NOTE, Cluster: "web", Author: "ann", Text: "rolled out v7"}); err != nil {
			return err
		}
		return w.Close()
	})
	for _, want := range []string{"1 1\n", "'kind': 'NOTE'", "'text': 'rolled out v7'", "'checker': ''", "2026-01-02T12:00:00.123456+00:00"} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is missing from %s", want, got)
		}
	}
	if got := read("none.parquet", func(to io.Writer) error { return NewEvents(to).Close() }); !strings.HasPrefix(got, "0 ") {
		t.Errorf("without rows: %s", got)
	}
}

// TestAFailingFileIsNoticed at the latest when it is closed.
func TestAFailingFileIsNoticed(t *testing.T) {
	w := NewTransitions(failing{})
	err := w.Write(change(1))
	if closed := w.Close(); err == nil && closed == nil {
		t.Error("nobody notices")
	}
	var b bytes.Buffer
	if err := NewTransitions(&b).Close(); err != nil || b.Len() == 0 {
		t.Error(b.Len(), err)
	}
}

type failing struct{}

// Write implements io.Writer.
func (failing) Write([]byte) (int, error) { return 0, io.ErrShortWrite }
