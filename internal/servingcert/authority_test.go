package servingcert

import (
	"crypto/x509"
	"testing"
	"time"
)

var start = time.Date(2026, 11, 25, 0, 0, 0, 0, time.UTC)

var names = []string{"centre.system.svc", "localhost"}

func renew(t *testing.T, a Authority, now time.Time) (Authority, bool) {
	t.Helper()
	next, changed, err := a.Renew(now)
	if err != nil {
		t.Fatal(err)
	}
	return next, changed
}

func issue(t *testing.T, a Authority, now time.Time) KeyPair {
	t.Helper()
	pair, err := a.Issue(names, now)
	if err != nil {
		t.Fatal(err)
	}
	return pair
}

// trusts reports whether a client with the bundle accepts the certificate.
func trusts(t *testing.T, bundle []byte, pair KeyPair, name string, now time.Time) bool {
	t.Helper()
	cert, err := pair.parse()
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(bundle)
	_, err = cert.Verify(x509.VerifyOptions{Roots: roots, DNSName: name, CurrentTime: now})
	return err == nil
}

func TestAClientWhoseClockIsHoursBehindTrustsANewCertificate(t *testing.T) {
	a, _ := renew(t, Authority{}, start)
	if !trusts(t, a.Bundle(), issue(t, a, start), names[0], start.Add(-12*time.Hour)) {
		t.Error("the certificate is not valid yet")
	}
}

func TestAClientTrustsOnlyCertificatesOfTheAuthorityForTheNameOfTheService(t *testing.T) {
	a, changed := renew(t, Authority{}, start)
	other, _ := renew(t, Authority{}, start)
	pair := issue(t, a, start)
	if !changed || !trusts(t, a.Bundle(), pair, names[0], start) || !trusts(t, a.Bundle(), pair, names[1], start) {
		t.Error("a new certificate is not trusted")
	}
	for what, ok := range map[string]bool{
		"another name":              trusts(t, a.Bundle(), pair, "other.system.svc", start),
		"another authority":         trusts(t, other.Bundle(), pair, names[0], start),
		"an expired certificate":    trusts(t, a.Bundle(), pair, names[0], start.Add(certificateLife+time.Hour)),
		"the authority as a server": trusts(t, a.Bundle(), a.Current, names[0], start),
	} {
		if ok {
			t.Errorf("%s is trusted", what)
		}
	}
}

func TestACertificateIsRenewedBeforeItEndsOrWhenItDoesNotFit(t *testing.T) {
	a, _ := renew(t, Authority{}, start)
	other, _ := renew(t, Authority{}, start)
	pair := issue(t, a, start)
	for name, tc := range map[string]struct {
		authority Authority
		pair      KeyPair
		names     []string
		at        time.Time
		want      bool
	}{
		"new":                   {a, pair, names, start, true},
		"shortly before":        {a, pair, names, start.Add(certificateLife - renewBefore - time.Hour), true},
		"ends soon":             {a, pair, names, start.Add(certificateLife - renewBefore + time.Hour), false},
		"none":                  {a, KeyPair{}, names, start, false},
		"another authority":     {other, pair, names, start, false},
		"another name":          {a, pair, append(names, "new.system.svc"), start, false},
		"a key of another pair": {a, KeyPair{pair.Cert, a.Current.Key}, names, start, false},
	} {
		if got := tc.authority.IsUpToDate(tc.pair, tc.names, tc.at); got != tc.want {
			t.Errorf("%s: serves is %t", name, got)
		}
	}
}

// A client keeps the bundle that it got at the start of a period of four years.
func TestABundleIsValidForFourYears(t *testing.T) {
	var a Authority
	type client struct {
		bundle []byte
		since  time.Time
	}
	var clients []client
	changes := 0
	for now := start; now.Before(start.Add(30 * year)); now = now.Add(year / 2) {
		next, changed := renew(t, a, now)
		if a = next; changed {
			changes++
		}
		clients = append(clients, client{a.Bundle(), now})
		pair := issue(t, a, now)
		for _, c := range clients {
			if now.Sub(c.since) < 4*year && !trusts(t, c.bundle, pair, names[0], now) {
				t.Fatalf("a client of %s does not trust a certificate of %s", c.since, now)
			}
		}
	}
	if changes < 8 {
		t.Errorf("only %d changes in 30 years", changes)
	}
}

func TestCertificatesOfTheReplacedAuthorityAreTrustedUntilTheyEnd(t *testing.T) {
	a, _ := renew(t, Authority{}, start)
	a, _ = renew(t, a, start.Add(6*year))
	replacing := start.Add(9*year + time.Hour)
	pair := issue(t, a, replacing)
	b, changed := renew(t, a, replacing)
	if !changed || string(b.Current.Cert) != string(a.Next.Cert) || !trusts(t, b.Bundle(), pair, names[0], replacing) {
		t.Error("a certificate of the replaced authority is not trusted")
	}
	if b.IsUpToDate(pair, names, replacing) {
		t.Error("it is not renewed")
	}
}

func TestASuccessorThatClientsTrustReplacesAnUnreadableOrExpiredAuthority(t *testing.T) {
	a, _ := renew(t, Authority{}, start)
	a, _ = renew(t, a, start.Add(6*year))
	for name, tc := range map[string]struct {
		current KeyPair
		at      time.Time
		// previous: certificates of the replaced CA are trusted.
		previous bool
	}{
		"expired":        {a.Current, start.Add(authorityLife + time.Hour), true},
		"no key":         {KeyPair{Cert: a.Current.Cert}, start.Add(7 * year), true},
		"no certificate": {KeyPair{Key: a.Current.Key}, start.Add(7 * year), false},
		"malformed":      {KeyPair{Cert: []byte("\xff"), Key: a.Current.Key}, start.Add(7 * year), false},
	} {
		b, changed := renew(t, Authority{Current: tc.current, Next: a.Next}, tc.at)
		if !changed || string(b.Current.Cert) != string(a.Next.Cert) || len(b.Next.Cert) > 0 {
			t.Errorf("%s: the successor does not sign", name)
		}
		if !trusts(t, a.Bundle(), issue(t, b, tc.at), names[0], tc.at) {
			t.Errorf("%s: a client with the former bundle does not trust a new certificate", name)
		}
		if got := len(b.Previous) > 0; got != tc.previous {
			t.Errorf("%s: the replaced CA is trusted: %t", name, got)
		}
	}
}

func TestAnUnreadableOrExpiredAuthorityIsReplaced(t *testing.T) {
	a, _ := renew(t, Authority{}, start)
	for name, tc := range map[string]struct {
		a    Authority
		at   time.Time
		want bool
	}{
		"valid":          {a, start.Add(year), false},
		"expired":        {a, start.Add(authorityLife + time.Hour), true},
		"no key":         {Authority{Current: KeyPair{Cert: a.Current.Cert}}, start, true},
		"no certificate": {Authority{Current: KeyPair{Key: a.Current.Key}}, start, true},
	} {
		if _, changed := renew(t, tc.a, tc.at); changed != tc.want {
			t.Errorf("%s: replaced is %t", name, changed)
		}
	}
}
