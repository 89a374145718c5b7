package cli

import (
	"context"
	"errors"
	"math/rand/v2"

	"weir/internal/fw/control"
)

// mayOpen reports whether the rules in force let pfctl open the box.
func (p *pfctl) mayOpen() (bool, error) {
	info, err := p.env.info()
	if err != nil {
		return false, err
	}
	return info.Loaded != nil && info.Loaded.MayOpen, nil
}

// open has the daemon do what opens the box, or takes that back.
func (p *pfctl) open(ctx context.Context, what control.Opening) error {
	folder, err := p.env.daemonFolder()
	if err != nil {
		return err
	}
	return control.NewClient(folder).Open(ctx, what)
}

// doDisable does -d.
func (p *pfctl) doDisable(ctx context.Context) error {
	may, err := p.mayOpen()
	if err != nil {
		return err
	}
	if !may {
		return errors.New("-d would open the box: weir stop removes weir; with set pfctl-may-open yes in the rules it would be allowed")
	}
	if p.dry {
		return nil
	}
	if err := p.open(ctx, control.Disable); err != nil {
		return err
	}
	p.say("pf disabled")
	return nil
}

// doEnable does -e and -E.
func (p *pfctl) doEnable(ctx context.Context) error {
	info, err := p.env.info()
	switch {
	case err != nil:
		return err
	case info.Loaded == nil:
		return errNothingLoaded
	case p.dry:
		return nil
	case info.Enabled && len(info.Loaded.Flushed) == 0: // also without a daemon
		if !p.hold && p.file == "" { // else the load has just enabled it
			return errors.New("pf already enabled")
		}
	default:
		if err := p.open(ctx, control.Enable); err != nil {
			return err
		}
	}
	if p.hold {
		p.say("pf enabled\nToken : %d", rand.Uint64()|1)
	} else if p.file == "" {
		p.say("pf enabled")
	}
	return nil
}

// doRelease does -X. The daemon is one that has pf enabled, so there always is another reference, and
// no token needs to be remembered.
func (p *pfctl) doRelease(context.Context) error {
	info, err := p.env.info()
	switch {
	case err != nil:
		return err
	case info.Loaded == nil:
		return errNothingLoaded
	case !info.Enabled:
		return errors.New("pf not enabled")
	}
	p.say("the token is given back; pf stays enabled until weir stop")
	return nil
}

// clearRules does -F for what opens the box, and refuses the rest.
func (p *pfctl) clearRules(ctx context.Context) error {
	said, opens := map[string]string{
		"rules": "rules cleared", "nat": "nat cleared", "ethernet": "ethernet rules cleared", "Reset": "options reset", "all": "rules cleared",
	}[p.clear]
	if !opens {
		return refuseFlush(p.clear)
	}
	may, err := p.mayOpen()
	if err != nil {
		return err
	}
	if !may {
		return refuseFlush(p.clear)
	}
	if !p.dry {
		if err := p.open(ctx, control.Opening(p.clear)); err != nil {
			return err
		}
	}
	p.say("%s", said)
	if p.clear != "all" {
		return nil
	}
	for _, part := range []string{"Tables", "states", "Sources"} {
		p.clear = part
		if err := p.doClear(ctx); err != nil {
			return err
		}
	}
	return nil
}
