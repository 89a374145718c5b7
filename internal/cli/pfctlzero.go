package cli

import (
	"context"

	"weir/internal/fw/rundir"
	"weir/internal/fw/view"
)

// weir's own counters only grow. What pfctl is told to clear begins at 0 for pfctl alone: a record
// says what the counters were.

func (p *pfctl) readZero() (*view.PfctlZero, error) {
	folder, err := p.env.folder()
	if err != nil {
		return nil, err
	}
	return view.ReadPfctlZero(folder)
}

// changeZero changes the record and says so.
func (p *pfctl) changeZero(said string, change func(z *view.PfctlZero)) error {
	z, err := p.readZero()
	if err != nil || p.dry {
		return err
	}
	change(z)
	folder, err := p.env.folder()
	if err != nil {
		return err
	}
	if err := rundir.WriteJSON(folder.PfctlZero(), z); err != nil {
		return err
	}
	p.say("%s", said)
	return nil
}

// rules returns the rules in force with what they have counted since pfctl -z.
func (p *pfctl) rules(r *view.View) (rules []view.Rule, pid int, err error) {
	if rules, pid, err = r.Rules(); err != nil {
		return nil, 0, err
	}
	z, err := p.readZero()
	if err != nil {
		return nil, 0, err
	}
	z.Subtract(rules)
	for i := range rules { // pf counts a packet at each crossing
		c := &rules[i]
		c.Packets, c.Bytes = c.PacketsIn+c.PacketsOut, c.BytesIn+c.BytesOut
	}
	return rules, pid, nil
}

// zeroRules does -z.
func (p *pfctl) zeroRules(context.Context) error {
	r, err := p.env.reader()
	if err != nil {
		return err
	}
	defer r.Close()
	rules, _, err := r.Rules()
	if err != nil {
		return err
	}
	return p.changeZero("pf: rule counters cleared", func(z *view.PfctlZero) { z.SetRules(rules) })
}

// zeroInfo does -F info.
func (p *pfctl) zeroInfo() error {
	info, err := p.env.info()
	if err != nil {
		return err
	}
	if info.Loaded == nil {
		return errNothingLoaded
	}
	return p.changeZero("pf: statistics cleared", func(z *view.PfctlZero) { z.Info = info.Counts() })
}
