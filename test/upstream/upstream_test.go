package upstream_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"

	"hdsd/test/upstream"
)

func start(t *testing.T, options upstream.Options) *upstream.Server {
	t.Helper()
	s, err := upstream.Start(t.Context(), options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

func client(t *testing.T, config *tls.Config) *http.Client {
	t.Helper()
	transport := &http.Transport{TLSClientConfig: config}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport, Timeout: time.Minute}
}

func TestSwitchesStatus(t *testing.T) {
	s := start(t, upstream.Options{})
	c := client(t, nil)
	for _, want := range []int{200, 503, 204} {
		if err := s.Set(upstream.Status(want)); err != nil {
			t.Fatal(err)
		}
		response, err := c.Get("http://" + s.Addr() + "/x")
		if err != nil {
			t.Fatal(err)
		}
		response.Body.Close()
		if response.StatusCode != want {
			t.Errorf("got %d, want %d", response.StatusCode, want)
		}
	}
	if err := s.WaitProbes(t.Context(), 3); err != nil {
		t.Fatal(err)
	}
	stats := s.Stats()
	if stats.Probes != 3 || stats.Hosts[s.Addr()] != 3 || s.Last().Path != "/x" {
		t.Errorf("stats %+v, last %+v", stats, s.Last())
	}
}

func TestFails(t *testing.T) {
	for name, b := range map[string]upstream.Behaviour{
		"reset": upstream.Reset(), "garbage": upstream.Garbage(), "refuse": upstream.Refuse(),
	} {
		t.Run(name, func(t *testing.T) {
			s := start(t, upstream.Options{Behaviour: b})
			if response, err := client(t, nil).Get("http://" + s.Addr()); err == nil {
				t.Errorf("got an answer: %v", response)
			}
		})
	}
}

func TestRefusesAndComesBackOnTheSamePort(t *testing.T) {
	s := start(t, upstream.Options{Protocol: upstream.TCP})
	old, err := net.Dial("tcp", s.Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer old.Close()
	if err := s.WaitProbes(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	s.Set(upstream.Refuse())
	if _, err := net.Dial("tcp", s.Addr()); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("got %v, want connection refused", err)
	}
	if _, err := old.Read(make([]byte, 1)); err == nil {
		t.Error("the old connection lives")
	}
	if err := s.Set(upstream.Healthy()); err != nil {
		t.Fatal(err)
	}
	c, err := net.Dial("tcp", s.Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	io.WriteString(c, "ping")
	answer := make([]byte, 4)
	if _, err := io.ReadFull(c, answer); err != nil || string(answer) != "ping" {
		t.Errorf("got %q, %v", answer, err)
	}
}

func TestNobodyElseGetsARefusingPort(t *testing.T) {
	for _, address := range []string{"127.0.0.1:0", "[::1]:0", "0.0.0.0:0"} {
		s := start(t, upstream.Options{Address: address})
		for range 3 {
			if err := s.Set(upstream.Refuse()); err != nil {
				t.Fatal(err)
			}
			if other, err := net.Listen("tcp", s.Addr()); err == nil {
				other.Close()
				t.Errorf("%s was there to take", s.Addr())
			}
			if err := s.Set(upstream.Healthy()); err != nil {
				t.Fatal(err)
			}
		}
		s.Set(upstream.Refuse())
		s.Close()
		free, err := net.Listen("tcp", s.Addr())
		if err != nil {
			t.Fatalf("kept after the end: %v", err)
		}
		free.Close()
	}
}

func TestHangsUntilThePeerGivesUp(t *testing.T) {
	s := start(t, upstream.Options{Behaviour: upstream.Hang()})
	ctx, cancel := context.WithCancel(t.Context())
	request, _ := http.NewRequestWithContext(ctx, "GET", "http://"+s.Addr(), strings.NewReader(""))
	done := make(chan error)
	go func() {
		_, err := client(t, nil).Do(request)
		done <- err
	}()
	if err := s.WaitProbes(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

func TestHTTPSWithItsOwnCertificate(t *testing.T) {
	s := start(t, upstream.Options{Protocol: upstream.HTTPS})
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(s.CA()) {
		t.Fatal("no certificate")
	}
	response, err := client(t, &tls.Config{RootCAs: pool}).Get("https://" + s.Addr())
	if err != nil {
		t.Fatal(err)
	}
	response.Body.Close()
	if response.StatusCode != 200 {
		t.Errorf("got %d", response.StatusCode)
	}
}

func TestManyAddresses(t *testing.T) {
	s := start(t, upstream.Options{Address: "0.0.0.0:0"})
	s.SetAt("127.0.7.2", upstream.Status(500))
	_, port, _ := net.SplitHostPort(s.Addr())
	for ip, want := range map[string]int{"127.0.7.1": 200, "127.0.7.2": 500} {
		response, err := client(t, nil).Get("http://" + net.JoinHostPort(ip, port))
		if err != nil {
			t.Fatal(err)
		}
		response.Body.Close()
		if response.StatusCode != want {
			t.Errorf("%s: got %d, want %d", ip, response.StatusCode, want)
		}
	}
}

func TestACutHoldsForOnePeer(t *testing.T) {
	s := start(t, upstream.Options{})
	get := func(from string) error {
		dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}
		transport := &http.Transport{DialContext: dialer.DialContext, DisableKeepAlives: true}
		response, err := (&http.Client{Transport: transport}).Get("http://" + s.Addr())
		if err == nil {
			response.Body.Close()
		}
		return err
	}
	s.Cut("127.0.7.3", upstream.Refuse())
	if get("127.0.7.3") == nil {
		t.Error("the peer that is cut off got an answer")
	}
	if err := get("127.0.7.4"); err != nil {
		t.Errorf("another peer: %v", err)
	}
	s.Mend("127.0.7.3")
	if err := get("127.0.7.3"); err != nil {
		t.Errorf("the peer once the cut has ended: %v", err)
	}
}

func TestLoopbackOnly(t *testing.T) {
	if _, err := upstream.Start(t.Context(), upstream.Options{Address: "192.0.2.1:0"}); !errors.Is(err, upstream.ErrNotLoopback) {
		t.Errorf("got %v", err)
	}
}

func TestEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	s, err := upstream.Start(ctx, upstream.Options{})
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	if err := s.WaitProbes(context.Background(), 1); err == nil {
		t.Error("it still waits for probes")
	}
	s.Close()
	if err := s.Set(upstream.Healthy()); !errors.Is(err, net.ErrClosed) {
		t.Errorf("got %v", err)
	}
}
