package lib

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// A Charon is strongSwan's daemon in a host, with a control socket, keys and connections of its own.
type Charon struct {
	*Process
	Socket string // of vici
	b      *Box
	host   string
	dir    string
}

// charonConf has the plugins that a connection needs, a socket of its own, and short patience.
const charonConf = `charon-systemd {
	load = random nonce aes sha1 sha2 hmac kdf gcm openssl pem pkcs1 pkcs8 x509 pubkey constraints vici kernel-netlink socket-default
	retransmit_timeout = 1
	retransmit_tries = 4
	retransmit_base = 1.3
	plugins {
		vici {
			socket = unix://%s
		}
	}
	filelog {
		stderr {
			default = 1
		}
	}
}
`

// Charon starts a charon in a host.
func (b *Box) Charon(host string) *Charon {
	b.Helper()
	dir, err := os.MkdirTemp(b.dir, "charon-")
	if err != nil {
		b.Fatal(err)
	}
	c := &Charon{b: b, host: host, dir: dir, Socket: filepath.Join(dir, "vici")}
	c.WriteFile("strongswan.conf", fmt.Sprintf(charonConf, c.Socket))
	c.Start()
	return c
}

// WriteFile writes a file of charon's own folder, which is also swanctl's, and returns its path.
func (c *Charon) WriteFile(name, text string) string {
	c.b.Helper()
	path := filepath.Join(c.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		c.b.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		c.b.Fatal(err)
	}
	return path
}

// Start starts charon, at first or after its end.
func (c *Charon) Start() {
	c.b.Helper()
	c.Process = c.b.Start(c.host, "env", "STRONGSWAN_CONF="+filepath.Join(c.dir, "strongswan.conf"), "charon-systemd")
	c.b.Until(10*time.Second, "charon listens", func() bool {
		if !c.Running() {
			c.b.Fatalf("charon has ended:\n%s", c.Said())
		}
		_, err := c.b.Try(c.host, "swanctl", "--version", "--daemon", "--uri", "unix://"+c.Socket)
		return err == nil
	})
}

// Swanctl runs swanctl with charon.
func (c *Charon) Swanctl(args ...string) string {
	c.b.Helper()
	all := append([]string{"SWANCTL_DIR=" + c.dir, "swanctl"}, args...)
	return c.b.Run(c.host, "env", append(all, "--uri", "unix://"+c.Socket)...)
}

// SPIs returns the numbers of the keys for packets, by which an end knows them.
func (c *Charon) SPIs() (all []string) {
	c.b.Helper()
	for _, line := range strings.Split(c.Swanctl("--list-sas"), "\n") {
		if fields := strings.Fields(line); len(fields) > 1 && fields[0] == "in" {
			all = append(all, strings.TrimSuffix(fields[1], ","))
		}
	}
	return all
}

// An Authority signs the certificates of a story.
type Authority struct {
	File string // its own certificate
	b    *Box
	is   *x509.Certificate
	key  *ecdsa.PrivateKey
}

// Authority makes an authority.
func (b *Box) Authority(name string) *Authority {
	b.Helper()
	a := &Authority{b: b}
	a.is = &x509.Certificate{Subject: pkix.Name{CommonName: name}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}
	a.File, _, a.key = a.sign(a.is, name)
	return a
}

// Issue makes a certificate for a name, and returns its file and that of its key.
func (a *Authority) Issue(name string) (certificate, key string) {
	a.b.Helper()
	certificate, key, _ = a.sign(&x509.Certificate{Subject: pkix.Name{CommonName: name}, DNSNames: []string{name}, KeyUsage: x509.KeyUsageDigitalSignature}, name)
	return certificate, key
}

// sign signs a certificate, the authority's own at first.
func (a *Authority) sign(c *x509.Certificate, name string) (certificate, keyFile string, key *ecdsa.PrivateKey) {
	a.b.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
	if err != nil {
		a.b.Fatal(err)
	}
	by := a.key
	if by == nil {
		by = key
	}
	c.SerialNumber, c.NotBefore, c.NotAfter = big.NewInt(time.Now().UnixNano()), time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	der, err := x509.CreateCertificate(rand.Reader, c, a.is, &key.PublicKey, by)
	if err != nil {
		a.b.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		a.b.Fatal(err)
	}
	write := func(kind, text string, der []byte) string {
		path := filepath.Join(a.b.dir, name+"."+kind)
		if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: text, Bytes: der}), 0o600); err != nil {
			a.b.Fatal(err)
		}
		return path
	}
	return write("pem", "CERTIFICATE", der), write("key", "PRIVATE KEY", private), key
}
