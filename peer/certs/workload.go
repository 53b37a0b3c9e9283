package certs

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/spiffe/go-spiffe/v2/spiffeid"
	"github.com/spiffe/go-spiffe/v2/svid/x509svid"
	"github.com/spiffe/go-spiffe/v2/workloadapi"

	configv1 "hdsd/gen/hdsd/config/v1"
)

const (
	startTimeout = 10 * time.Second // for the first answer of a Workload API
	lostPause    = time.Minute      // between two reports of a failure
)

// Mutual reports whether clients need a certificate.
func Mutual(c *configv1.ServerTls) bool {
	return c.GetClientCaFile() != "" || c.GetSpiffeWorkloadApi() != nil
}

// CheckWorkloadAPI checks the address of a Workload API, and the trust domains.
func CheckWorkloadAPI(c *configv1.SpiffeWorkloadApi) (field string, err error) {
	if err := workloadapi.ValidateAddress(c.GetAddress()); err != nil {
		return "address", fmt.Errorf("%q is no address of a Workload API (%w): write one such as unix:///run/spire/agent.sock", c.GetAddress(), err)
	}
	for i, name := range c.GetTrustDomains() {
		if _, err := spiffeid.TrustDomainFromString(name); err != nil || strings.Contains(name, "/") {
			return fmt.Sprintf("trust_domains[%d]", i), fmt.Errorf("%q is no trust domain: write its name, such as prod.example.com", name)
		}
	}
	return "", nil
}

// workloadAPI is a source of certificates that asks a Workload API. go-spiffe keeps its answers
// up to date.
type workloadAPI struct {
	*workloadapi.X509Source
	domains []spiffeid.TrustDomain // of accepted clients; none: the server's own one
}

func openWorkload(c *configv1.SpiffeWorkloadApi, lost func(error)) (*workloadAPI, error) {
	if field, err := CheckWorkloadAPI(c); err != nil {
		return nil, fmt.Errorf("%s: %w", field, err)
	}
	w := &workloadAPI{}
	for _, name := range c.GetTrustDomains() {
		w.domains = append(w.domains, spiffeid.RequireTrustDomainFromString(name))
	}
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	losses := &lossLog{lost: lost}
	var err error
	w.X509Source, err = workloadapi.NewX509Source(ctx, workloadapi.WithClientOptions(workloadapi.WithAddr(c.GetAddress()), workloadapi.WithLogger(losses)))
	if err != nil {
		if last := losses.last(); last != "" {
			err = errors.New(last)
		}
		return nil, fmt.Errorf("the Workload API at %s gave no certificate within %s: see that its agent runs and has an entry for hdsd (%w)", c.GetAddress(), startTimeout, err)
	}
	return w, nil
}

func (w *workloadAPI) pair() (tls.Certificate, digest, error) {
	svid, err := w.GetX509SVID()
	if err != nil {
		return tls.Certificate{}, digest{}, err
	}
	pair := tls.Certificate{PrivateKey: svid.PrivateKey, Leaf: svid.Certificates[0]}
	for _, cert := range svid.Certificates {
		pair.Certificate = append(pair.Certificate, cert.Raw)
	}
	return pair, sumOf(svid.Certificates), nil
}

// clientAuthorities returns those of all accepted and known trust domains.
func (w *workloadAPI) clientAuthorities() (authorities []*x509.Certificate, _ digest, _ error) {
	domains, err := w.accepted()
	if err != nil {
		return nil, digest{}, err
	}
	for _, domain := range domains {
		if bundle, err := w.GetX509BundleForTrustDomain(domain); err == nil {
			authorities = append(authorities, bundle.X509Authorities()...)
		}
	}
	if len(authorities) == 0 {
		return nil, digest{}, fmt.Errorf("the Workload API gives no authorities of %v: federate with these trust domains, or correct trust_domains", domains)
	}
	return authorities, sumOf(authorities), nil
}

func (w *workloadAPI) accepted() ([]spiffeid.TrustDomain, error) {
	if len(w.domains) > 0 {
		return w.domains, nil
	}
	svid, err := w.GetX509SVID()
	if err != nil {
		return nil, err
	}
	return []spiffeid.TrustDomain{svid.ID.TrustDomain()}, nil
}

// accepts implements source: a client has a SPIFFE id, in an accepted trust domain whose own
// authority has signed for it.
func (w *workloadAPI) accepts(chains [][]*x509.Certificate) error {
	domains, err := w.accepted()
	if err != nil {
		return err
	}
	for _, chain := range chains {
		id, idErr := x509svid.IDFromCert(chain[0])
		if idErr != nil {
			return fmt.Errorf("the client's certificate has no SPIFFE id: %w", idErr)
		}
		err = fmt.Errorf("the client is %s, and none of the trust domains %v has signed for it", id, domains)
		for _, domain := range domains {
			bundle, bundleErr := w.GetX509BundleForTrustDomain(domain)
			if bundleErr == nil && id.MemberOf(domain) && bundle.HasX509Authority(chain[len(chain)-1]) {
				return nil
			}
		}
	}
	return err
}

// namesHosts reports that SVIDs name workloads.
func (*workloadAPI) namesHosts() bool { return false }

func (w *workloadAPI) close() error { return w.Close() }

// sumOf identifies certificates, whatever their order.
func sumOf(certificates []*x509.Certificate) (sum digest) {
	for _, cert := range certificates {
		for i, b := range sha256.Sum256(cert.Raw) {
			sum[i] ^= b
		}
	}
	return sum
}

// lossLog reports the failures of a Workload API. It implements go-spiffe's Logger.
type lossLog struct {
	lost func(error)

	mu   sync.Mutex // guards the fields below
	time time.Time  // of the last report
	text string
}

// Errorf implements logger.Logger.
func (l *lossLog) Errorf(format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.text = fmt.Sprintf(format, args...)
	if now := time.Now(); l.lost != nil && now.Sub(l.time) >= lostPause {
		l.time = now
		l.lost(errors.New(l.text))
	}
}

func (l *lossLog) last() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text
}

// Warnf implements logger.Logger.
func (l *lossLog) Warnf(format string, args ...any) { l.Errorf(format, args...) }

// Infof implements logger.Logger.
func (*lossLog) Infof(string, ...any) {}

// Debugf implements logger.Logger.
func (*lossLog) Debugf(string, ...any) {}
