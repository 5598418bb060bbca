package disk

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"podd/manifest/disk"
	"podd/runtime/bootid"
)

// An iscsiRecord contains the actions of podd on an iSCSI target.
type iscsiRecord struct {
	Target string `json:"target"`
	// Interface is the name of the interface of iscsiadm for the sessions.
	Interface string `json:"interface"`
	// IsInterfaceCreated reports whether podd has created the interface.
	IsInterfaceCreated bool `json:"isCreated,omitempty"`
	// Logins contains the portals at which podd has logged in, or may have logged in.
	Logins []login `json:"logins,omitempty"`
	// ScanBoots contains, by the name of the disk, the boot ID of the host at the last scan that
	// may have added the disk.
	ScanBoots map[string]string `json:"scanned,omitempty"`
}

// A login is a login of podd at a portal. Boot is the boot ID of the host at the login. The session
// does not outlive a reboot, but the record in the database of iscsiadm does.
type login struct {
	Portal disk.Portal `json:"portal"`
	Boot   string      `json:"boot"`
}

// An attachment attaches one disk of an iSCSI target.
type attachment struct {
	*target
	record *iscsiRecord
	volume Volume
	disk   string // name of the disk
	boot   string
}

// attachISCSI logs in to the target of v at each portal, unless a session exists, and returns the
// devices of the disk. One portal is sufficient. The kubelet tries the other portals again a few times,
// but podd does not.
func (t *target) attachISCSI(ctx context.Context, v Volume) ([]string, error) {
	r, err := t.load()
	if err != nil {
		return nil, err
	}
	if r.ISCSI == nil {
		r.ISCSI = &iscsiRecord{Target: v.ISCSI.Target, Interface: v.ISCSI.Interface}
		if v.ISCSI.Initiator != "" {
			r.ISCSI.Interface = "podd-" + strings.TrimPrefix(filepath.Base(t.dir), "iscsi-")[:16]
		}
	}
	a := attachment{target: t, record: r.ISCSI, volume: v, disk: v.name().disk}
	if a.boot, err = bootid.Get(); err != nil {
		return nil, err
	}
	if err := a.createInterface(ctx); err != nil {
		return nil, err
	}
	var devices []string
	var errs []error
	for _, portal := range v.ISCSI.Portals {
		device, err := a.attachPath(ctx, portal)
		switch {
		case ctx.Err() != nil:
			return nil, context.Cause(ctx)
		case err != nil:
			errs = append(errs, fmt.Errorf("iSCSI target %s at %s: %w", v.ISCSI.Target, portal, err))
		case !slices.Contains(devices, device):
			devices = append(devices, device)
		}
	}
	if len(devices) == 0 {
		return nil, errors.Join(errs...)
	}
	return devices, nil
}

func (a *attachment) save() error { return a.target.save(record{ISCSI: a.record}) }

// attachPath returns the device of the disk at one portal.
func (a *attachment) attachPath(ctx context.Context, p disk.Portal) (string, error) {
	s, err := a.findSession(p)
	if err != nil {
		return "", err
	}
	if s == nil {
		if err := a.login(ctx, p); err != nil {
			return "", err
		}
	}
	if s, err = a.waitForSession(ctx, p); err != nil {
		return "", err
	}
	device, err := s.device(a.volume.ISCSI.LUN)
	if device != "" || err != nil {
		return device, err
	}
	if a.record.ScanBoots == nil {
		a.record.ScanBoots = map[string]string{}
	}
	a.record.ScanBoots[a.disk] = a.boot
	if err := a.save(); err != nil {
		return "", err
	}
	// Scan only this LUN, so that the kernel does not add the LUNs of other volumes.
	if err := a.m.Host.write(ctx, filepath.Join(a.m.Host.Sys, "class/scsi_host", s.host, "scan"), fmt.Sprintf("0 0 %d", a.volume.ISCSI.LUN)); err != nil {
		return "", fmt.Errorf("scanning LUN %d: %w", a.volume.ISCSI.LUN, err)
	}
	exists, err := poll(ctx, deviceTimeout, func() (bool, error) {
		device, err = s.device(a.volume.ISCSI.LUN)
		return device != "", err
	})
	if err == nil && !exists {
		err = fmt.Errorf("the target has no disk with LUN %d for this initiator, or did not respond within %s; check the LUN and the access control of the target", a.volume.ISCSI.LUN, deviceTimeout)
	}
	return device, err
}

// findSession returns the session at a portal, or nil if there is none.
func (a *attachment) findSession(p disk.Portal) (*session, error) {
	sessions, err := a.m.Host.sessions(a.record.Target, a.record.Interface)
	for _, s := range sessions {
		if s.connectsTo(p) {
			return &s, nil
		}
	}
	return nil, err
}

// sessionTimeout is the maximum time until a session is established after iscsiadm has succeeded,
// or is established again after an interruption.
const sessionTimeout = 10 * time.Second

// waitForSession waits until the session at a portal is established.
func (a *attachment) waitForSession(ctx context.Context, p disk.Portal) (*session, error) {
	var s *session
	isReady, err := poll(ctx, sessionTimeout, func() (bool, error) {
		var err error
		s, err = a.findSession(p)
		return s != nil && s.state == loggedIn, err
	})
	switch {
	case err != nil:
		return nil, err
	case s == nil:
		return nil, errors.New("iscsiadm reported success, but the kernel has no session")
	case !isReady:
		return nil, fmt.Errorf("the session is interrupted (%s); check that the target runs and that this node can reach it", s.state)
	}
	return s, nil
}

// login logs in to the target at a portal. It records the login first, so that podd logs out later even
// if it is killed now.
func (a *attachment) login(ctx context.Context, p disk.Portal) error {
	group, err := a.discover(ctx, p)
	if err != nil {
		return err
	}
	a.record.Logins = slices.DeleteFunc(a.record.Logins, func(l login) bool { return samePortal(l.Portal, p) })
	a.record.Logins = append(a.record.Logins, login{p, a.boot})
	if err := a.save(); err != nil {
		return err
	}
	err = a.createNode(ctx, p, group)
	if err == nil {
		if err = a.node(ctx, p, loginTimeout, "--login"); exitCode(err) == sessionExists {
			err = nil
		}
	}
	if err != nil && ctx.Err() == nil { // do not leave the record, because it may contain credentials
		_ = a.node(ctx, p, adminTimeout, "-o", "delete") // logout deletes the record again
	}
	return err
}

// logout logs out of the sessions of podd, and deletes their records in the database of iscsiadm.
func (t *target) logout(ctx context.Context, r *iscsiRecord) error {
	boot, err := bootid.Get()
	if err != nil {
		return err
	}
	a := attachment{target: t, record: r, boot: boot}
	for _, l := range r.Logins {
		if l.Boot == boot {
			if err := a.node(ctx, l.Portal, loginTimeout, "--logout"); err != nil && exitCode(err) != noSession && exitCode(err) != noRecord {
				return fmt.Errorf("logging out of the iSCSI target %s at %s: %w", r.Target, l.Portal, err)
			}
		}
		if err := a.node(ctx, l.Portal, adminTimeout, "-o", "delete"); err != nil && exitCode(err) != noRecord {
			return fmt.Errorf("deleting the record of the iSCSI target %s at %s: %w", r.Target, l.Portal, err)
		}
	}
	if !r.IsInterfaceCreated {
		return nil
	}
	err = a.iscsiadm(ctx, adminTimeout, "-m", "iface", "-I", r.Interface, "-o", "delete")
	if err == nil {
		return nil
	}
	if _, showErr := a.interfaceSettings(ctx, r.Interface); exitCode(showErr) > 0 { // an interrupted call of logout has deleted the interface
		return nil
	}
	return fmt.Errorf("deleting the interface %s of iscsiadm: %w", r.Interface, err)
}
