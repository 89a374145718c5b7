package ipsec

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"time"

	"weir/pf/resolve"
)

// inventory is what charon has, of everybody.
type inventory struct{ connections, shared, keys map[string]bool }

func (c *Charon) inventory(ctx context.Context) (has inventory, err error) {
	if has.connections, err = c.client.list(ctx, "get-conns", "conns"); err != nil {
		return has, err
	}
	if has.shared, err = c.client.list(ctx, "get-shared", "keys"); err != nil {
		return has, err
	}
	has.keys, err = c.client.list(ctx, "get-keys", "keys")
	return has, err
}

// refusedPause is how long charon is left alone with what it has refused.
const refusedPause = 10 * time.Second

// give has charon have a tunnel, unless it has it as it is.
func (c *Charon) give(ctx context.Context, t *memory, has inventory, now time.Time) error {
	name := prefix + t.of.Name
	perCPU := t.of.PerCPU && c.perCPU() == ""
	want := given{
		Connection:  fingerprint(connection(&t.of, &credentials{}, perCPU)),
		Credentials: t.credentials.fingerprint(c.ledger.Salt, owners(&t.of)...),
	}
	was, known := c.ledger.Given[t.of.Name]
	want.Key = t.credentials.keyID
	whole := has.connections[name] && (t.credentials.psk == nil || has.shared[name]) && (t.credentials.key == nil || has.keys[want.Key])
	switch {
	case whole && was == want:
		t.refused = ""
		return nil
	case t.refused != "" && t.given == want && now.Sub(t.tried) < refusedPause:
		return nil
	}
	t.refused, t.given, t.tried = "", want, now
	c.ledger.Given[t.of.Name] = given{Connection: was.Connection, Key: want.Key} // until it is
	if err := c.ledger.write(); err != nil {
		return err
	}
	err := c.giveSecrets(ctx, name, t, has)
	if err == nil {
		_, err = c.client.call(ctx, "load-conn", section{{name, connection(&t.of, t.credentials, perCPU)}})
	}
	if r := (*refusal)(nil); errors.As(err, &r) {
		t.refused = err.Error()
		return nil
	}
	if err != nil {
		return err
	}
	if known && was.Connection != "" && was.Connection != want.Connection { // what there is was agreed upon by the old one
		if err := c.end(ctx, name); err != nil {
			return err
		}
	}
	t.pause = 0
	c.ledger.Given[t.of.Name] = want
	return c.ledger.write()
}

// giveSecrets gives charon the keys of a tunnel. A private key that somebody else has given it already
// stays theirs.
func (c *Charon) giveSecrets(ctx context.Context, name string, t *memory, has inventory) error {
	for _, above := range t.credentials.chain {
		if _, err := c.client.call(ctx, "load-cert", section{{"type", "X509"}, {"flag", "NONE"}, {"data", string(above)}}); err != nil {
			return err
		}
	}
	if t.credentials.psk != nil {
		_, err := c.client.call(ctx, "load-shared", section{{"id", name}, {"type", "IKE"}, {"data", string(t.credentials.psk)}, {"owners", owners(&t.of)}})
		return err
	}
	id := t.credentials.keyID
	if has.keys[id] {
		return nil
	}
	c.ledger.Keys[id] = true
	if err := c.ledger.write(); err != nil {
		return err
	}
	_, err := c.client.call(ctx, "load-key", section{{"type", "any"}, {"data", string(t.credentials.key)}})
	has.keys[id] = err == nil
	return err
}

// takeBack unloads what weir has given to charon and is wanted no more.
func (c *Charon) takeBack(ctx context.Context, wanted []resolve.IKEv2, has inventory) error {
	names, shared, keys := map[string]bool{}, map[string]bool{}, map[string]bool{}
	for i := range wanted {
		name := prefix + wanted[i].Name
		names[name], shared[name] = true, wanted[i].PSKFile != ""
		if g, ok := c.ledger.Given[wanted[i].Name]; ok && wanted[i].PSKFile == "" {
			keys[g.Key] = true
		}
	}
	var errs []error
	gone := map[string]bool{}
	for name := range has.connections {
		if strings.HasPrefix(name, prefix) && !names[name] {
			errs = append(errs, c.unload(ctx, "unload-conn", "name", name))
			gone[name] = true
		}
	}
	for name := range c.ledger.Given {
		gone[prefix+name] = gone[prefix+name] || !names[prefix+name]
	}
	for name, is := range gone {
		if is {
			plain := strings.TrimPrefix(name, prefix)
			errs = append(errs, c.end(ctx, name))
			if err := c.flush(resolve.InterfaceID(plain)); err != nil {
				c.log.Warn("remove the keys of a tunnel", "interface", plain, "error", err)
			}
			delete(c.ledger.Given, plain)
			c.forget(name)
		}
	}
	for id := range has.shared {
		if strings.HasPrefix(id, prefix) && !shared[id] {
			errs = append(errs, c.unload(ctx, "unload-shared", "id", id))
		}
	}
	for id := range c.ledger.Keys {
		if keys[id] {
			continue
		}
		if has.keys[id] {
			errs = append(errs, c.unload(ctx, "unload-key", "id", id))
		}
		delete(c.ledger.Keys, id)
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	return c.ledger.write()
}

// unload unloads one thing. What is gone already is no error.
func (c *Charon) unload(ctx context.Context, command, key, name string) error {
	_, err := c.client.call(ctx, command, section{{key, name}})
	if r := (*refusal)(nil); errors.As(err, &r) {
		c.log.Warn("unload what charon was given", "command", command, "name", name, "error", err)
		return nil
	}
	return err
}

// endPatience is how long a peer may take to say that it has ended a connection, in milliseconds.
const endPatience = "1000"

// end ends what is up of a connection, and tells the peer.
func (c *Charon) end(ctx context.Context, name string) error {
	_, err := c.client.call(ctx, "terminate", section{{"ike", name}, {"force", "yes"}, {"timeout", endPatience}})
	if r := (*refusal)(nil); errors.As(err, &r) {
		return nil // there is nothing
	}
	return err
}

func fingerprint(s section) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%q", s))
	return hex.EncodeToString(sum[:])
}
