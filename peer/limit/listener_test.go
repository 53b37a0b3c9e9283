package limit

import (
	"errors"
	"net"
	"testing"
	"testing/synctest"
	"time"
)

// numbered accepts connections at once, each from an address of its own.
type numbered struct {
	net.Listener
	n    int
	then func() // called before the fourth
}

type at struct {
	net.Conn
	port int
}

func (a at) RemoteAddr() net.Addr { return &net.TCPAddr{IP: net.IPv4(10, 0, 0, 1), Port: a.port} }

func (l *numbered) Accept() (net.Conn, error) {
	if l.n++; l.n == 4 && l.then != nil {
		l.then()
	}
	_, far := net.Pipe()
	return at{far, l.n}, nil
}

// open accepts so many connections.
func open(t *testing.T, o ListenerOptions, count int) (*Listener, []*Conn) {
	t.Helper()
	l := Listen(&numbered{}, o)
	var all []*Conn
	for range count {
		c, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, c.(*Conn))
	}
	return l, all
}

// TestAges: those that began together are asked to move before they end, and do not end
// together.
func TestAges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		ends := map[string]time.Duration{}
		l, all := open(t, ListenerOptions{MaxAge: 1000 * time.Second, Ended: func(c *Conn, why error) {
			if !errors.Is(why, ErrAge) || !c.IsOld(time.Now()) {
				t.Errorf("ended by %v, asked to move: %t", why, c.IsOld(time.Now()))
			}
			ends[c.RemoteAddr().String()] = time.Since(began)
		}}, 200)
		for range 1001 {
			for _, c := range all {
				if age := time.Since(began).Seconds(); c.IsOld(time.Now()) && age < 720 || !c.IsOld(time.Now()) && age > 880 {
					t.Fatalf("after %v s it is old: %t", age, c.IsOld(time.Now()))
				}
			}
			l.Sweep(time.Now())
			time.Sleep(time.Second)
		}
		at := map[time.Duration]int{}
		for address, age := range ends {
			if at[age.Truncate(time.Second)]++; age < 880*time.Second || at[age.Truncate(time.Second)] > 20 {
				t.Errorf("%s ended at %v, with %d others", address, age, at[age.Truncate(time.Second)])
			}
			if !l.Planned(address) && age > 950*time.Second {
				t.Errorf("the end of %s is not remembered", address)
			}
		}
		if len(ends) != len(all) || len(l.open) != 0 {
			t.Errorf("%d ends; %d are open", len(ends), len(l.open))
		}
		time.Sleep(2 * rememberFor)
		if l.Sweep(time.Now()); len(l.planned) != 0 {
			t.Errorf("%d ends are still remembered", len(l.planned))
		}
	})
}

// TestHold ends a connection when what holds it is gone, and no other.
func TestHold(t *testing.T) {
	gone := errors.New("gone")
	var ended []error
	l, all := open(t, ListenerOptions{Ended: func(_ *Conn, why error) { ended = append(ended, why) }}, 3)
	var held error
	all[0].Hold(func() error { return held })
	all[1].Hold(func() error { return nil })
	l.Sweep(time.Now())
	held = gone
	l.Sweep(time.Now().Add(1000 * time.Hour))
	l.Sweep(time.Now())
	if len(ended) != 1 || !errors.Is(ended[0], gone) || len(l.open) != 2 || l.Planned(all[0].RemoteAddr().String()) {
		t.Errorf("ended: %v; %d are open", ended, len(l.open))
	}
	if _, err := all[0].Read(make([]byte, 1)); err == nil {
		t.Error("the connection is open")
	}
	all[2].Close()
	if len(l.open) != 1 {
		t.Error("a closed connection is kept")
	}
}

// TestMostConnections: one more than may be open is closed at once, until another ends.
func TestMostConnections(t *testing.T) {
	refused := 0
	l, all := open(t, ListenerOptions{Max: 2, Refused: func() { refused++ }}, 2)
	from := l.Listener.(*numbered)
	from.then = func() { all[0].Close() } // when the one after it comes
	c, err := l.Accept()
	if err != nil || refused != 1 || c.RemoteAddr().(*net.TCPAddr).Port != 4 {
		t.Errorf("%v, %v, %d are refused", c.RemoteAddr(), err, refused)
	}
	all[1].Close()
	if all[1].Close(); len(l.open) != 1 {
		t.Errorf("%d are open", len(l.open))
	}
}
