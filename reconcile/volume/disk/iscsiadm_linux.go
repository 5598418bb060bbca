package disk

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode"

	"golang.org/x/sys/unix"

	"podd/manifest/disk"
)

const (
	// discoveryTimeout and loginTimeout are longer than one attempt of iscsiadm, which takes up to
	// 15 seconds.
	discoveryTimeout = time.Minute
	loginTimeout     = 2 * time.Minute
	adminTimeout     = 30 * time.Second // for operations on the database
)

// Exit codes of iscsiadm (iscsiadm(8)).
const (
	noSession     = 2
	sessionExists = 15
	noDaemon      = 20
	noRecord      = 21
	authFailed    = 24
)

// iscsiadm runs iscsiadm. The arguments must not contain credentials, because every user can read the
// arguments of a process.
func (a *attachment) iscsiadm(ctx context.Context, limit time.Duration, args ...string) error {
	_, err := a.query(ctx, limit, args...)
	return err
}

// query is like iscsiadm, but returns the output.
func (a *attachment) query(ctx context.Context, limit time.Duration, args ...string) (string, error) {
	output, err := a.m.Host.Run(ctx, limit, iscsiadm, args...)
	if err == nil {
		return output, nil
	}
	code := exitCode(err)
	err = programError(output, err)
	switch code {
	case noDaemon:
		err = fmt.Errorf("%w; start the service iscsid (systemctl start iscsid)", err)
	case authFailed:
		err = fmt.Errorf("%w; check the CHAP credentials in the Secret and the access control of the target", err)
	}
	return output, err
}

// node runs iscsiadm for the record of the target at a portal.
func (a *attachment) node(ctx context.Context, p disk.Portal, limit time.Duration, args ...string) error {
	return a.iscsiadm(ctx, limit, append([]string{"-m", "node", "-T", a.record.Target, "-p", p.String(), "-I", a.record.Interface}, args...)...)
}

// discover queries a portal for its targets, and returns the tag of the portal group in which the
// target has the portal; "" if the target does not list the portal. It stores nothing in the database
// of iscsiadm, unlike the kubelet, because the portal may also list targets that podd does not use.
func (a *attachment) discover(ctx context.Context, p disk.Portal) (group string, err error) {
	args := []string{"-t", "sendtargets", "-p", p.String(), "-I", a.record.Interface}
	var output string
	if a.volume.ISCSI.DiscoveryCHAP {
		db := append([]string{"-m", "discoverydb"}, args...)
		if err := a.iscsiadm(ctx, adminTimeout, append(slices.Clone(db), "-o", "new")...); err != nil {
			return "", fmt.Errorf("preparing the discovery: %w", err)
		}
		defer func() {
			if deleteErr := a.iscsiadm(context.WithoutCancel(ctx), adminTimeout, append(slices.Clone(db), "-o", "delete")...); err == nil && exitCode(deleteErr) != noRecord {
				err = deleteErr
			}
		}()
		if err := a.setDiscoveryCredentials(p); err != nil {
			return "", err
		}
		output, err = a.query(ctx, discoveryTimeout, append(slices.Clone(db), "-o", "nonpersistent", "--discover")...)
	} else {
		output, err = a.query(ctx, discoveryTimeout, append(append([]string{"-m", "discovery"}, args...), "-o", "nonpersistent")...)
	}
	if err != nil {
		return "", fmt.Errorf("discovery: %w", err)
	}
	group, isOffered := parseDiscovery(output, a.record.Target, p)
	if !isOffered {
		return "", fmt.Errorf("the portal does not offer the target to this initiator, but: %s; check the name and the access control of the target", oneLine(output))
	}
	return group, nil
}

// maxParsed is the length of output in bytes above which the end of the output may be missing.
const maxParsed = 4 << 10

// parseDiscovery parses the output of a discovery, which are lines of "address:port,group target".
// group is "" if the target is not offered at p. isOffered is also true if the end of the output
// may be missing.
func parseDiscovery(output, target string, p disk.Portal) (group string, isOffered bool) {
	isOffered = len(output) >= maxParsed
	for line := range strings.Lines(output) {
		address, name, _ := strings.Cut(strings.TrimSpace(line), " ")
		if name != target {
			continue
		}
		isOffered = true
		address, tag, _ := strings.Cut(address, ",")
		if i := strings.LastIndexByte(address, ':'); i >= 0 {
			q := disk.Portal{Host: strings.Trim(address[:i], "[]"), Port: p.Port}
			if address[i+1:] == fmt.Sprint(p.Port) && samePortal(p, q) && strings.Trim(tag, "0123456789") == "" {
				group = tag
			}
		}
	}
	return group, isOffered
}

// createNode creates the record of the target at a portal in the database of iscsiadm. With this
// record, only podd logs in to the target and scans its LUNs.
func (a *attachment) createNode(ctx context.Context, p disk.Portal, group string) error {
	portal := p.String()
	if group != "" {
		portal += "," + group
	}
	if err := a.iscsiadm(ctx, adminTimeout, "-m", "node", "-T", a.record.Target, "-p", portal, "-I", a.record.Interface, "-o", "new"); err != nil {
		return fmt.Errorf("creating a record of the target: %w", err)
	}
	if err := a.node(ctx, p, adminTimeout, "-o", "update", "-n", "node.startup", "-v", "manual"); err != nil {
		return fmt.Errorf("disabling the automatic login: %w", err)
	}
	// Without this setting, the login adds all LUNs of the target. Old versions do not have it.
	if err := a.node(ctx, p, adminTimeout, "-o", "update", "-n", "node.session.scan", "-v", "manual"); err != nil && ctx.Err() != nil {
		return err
	}
	if !a.volume.ISCSI.SessionCHAP {
		return nil
	}
	return a.setSessionCredentials(p)
}

// createInterface creates an interface of iscsiadm with the initiator of the volume, if the volume
// specifies an initiator. The new interface is a copy of the volume's interface.
func (a *attachment) createInterface(ctx context.Context) error {
	s := a.volume.ISCSI
	if s.Initiator == "" {
		return nil
	}
	desiredSettings, err := a.interfaceSettings(ctx, s.Interface)
	if err != nil {
		return err
	}
	desiredSettings["iface.initiatorname"] = s.Initiator
	oldSettings, err := a.interfaceSettings(ctx, a.record.Interface)
	if err != nil && exitCode(err) < 0 {
		return err
	}
	if err != nil {
		a.record.IsInterfaceCreated = true
		if err := a.save(); err != nil {
			return err
		}
		if err := a.iscsiadm(ctx, adminTimeout, "-m", "iface", "-I", a.record.Interface, "-o", "new"); err != nil {
			return fmt.Errorf("creating the interface %s of iscsiadm: %w", a.record.Interface, err)
		}
		if oldSettings, err = a.interfaceSettings(ctx, a.record.Interface); err != nil {
			return err
		}
	}
	for _, key := range slices.Sorted(maps.Keys(desiredSettings)) {
		if oldSettings[key] == desiredSettings[key] {
			continue
		}
		if err := a.iscsiadm(ctx, adminTimeout, "-m", "iface", "-I", a.record.Interface, "-o", "update", "-n", key, "-v", desiredSettings[key]); err != nil {
			return fmt.Errorf("setting %s of the interface %s of iscsiadm: %w", key, a.record.Interface, err)
		}
	}
	return nil
}

// interfaceSettings returns the settings of an interface of iscsiadm, except its name.
func (a *attachment) interfaceSettings(ctx context.Context, name string) (map[string]string, error) {
	output, err := a.query(ctx, adminTimeout, "-m", "iface", "-I", name, "-o", "show")
	if err != nil {
		return nil, fmt.Errorf("reading the interface %s of iscsiadm: %w", name, err)
	}
	return parseSettings(output), nil
}

// parseSettings parses lines of "name = value". It omits empty values, and the name of the interface.
func parseSettings(output string) map[string]string {
	settings := map[string]string{}
	for line := range strings.Lines(output) {
		key, value, hasValue := strings.Cut(strings.TrimSpace(line), " = ")
		if hasValue && strings.HasPrefix(key, "iface.") && key != "iface.iscsi_ifacename" && value != "<empty>" {
			settings[key] = value
		}
	}
	return settings
}

// setSessionCredentials writes the CHAP credentials for sessions to the record of the target.
func (a *attachment) setSessionCredentials(p disk.Portal) error {
	portal := fmt.Sprintf("%s,%d", p.Host, p.Port)
	for _, dir := range a.m.Host.ISCSI {
		dir = filepath.Join(dir, "nodes", a.record.Target)
		entries, err := names(dir)
		if err != nil {
			return err
		}
		for _, entry := range entries {
			path := filepath.Join(dir, entry, a.record.Interface)
			switch {
			case entry == portal: // a record without a portal group
				path = filepath.Join(dir, entry)
			case !strings.HasPrefix(entry, portal+","):
				continue
			}
			err := a.setCredentials(path, "node.session.auth.authmethod", disk.SessionUser, disk.SessionPassword, disk.SessionUserIn, disk.SessionPasswordIn)
			if !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, unix.ENOTDIR) {
				return err
			}
		}
	}
	return a.missingDatabaseError()
}

// setDiscoveryCredentials writes the CHAP credentials for the discovery to the record of a portal.
func (a *attachment) setDiscoveryCredentials(p disk.Portal) error {
	for _, dir := range a.m.Host.ISCSI {
		path := filepath.Join(dir, "send_targets", fmt.Sprintf("%s,%d", p.Host, p.Port), "st_config")
		err := a.setCredentials(path, "discovery.sendtargets.auth.authmethod", disk.DiscoveryUser, disk.DiscoveryPassword, disk.DiscoveryUserIn, disk.DiscoveryPasswordIn)
		if !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return a.missingDatabaseError()
}

func (a *attachment) missingDatabaseError() error {
	return fmt.Errorf("iscsiadm has not stored its record in %s; podd passes CHAP credentials only in this file, because every user can read the arguments of a process", strings.Join(a.m.Host.ISCSI, " or "))
}

// setCredentials writes the values of the Secret at keys to a record of iscsiadm, and sets the
// authentication method to CHAP. It removes credentials that the Secret does not contain.
func (a *attachment) setCredentials(path, method string, keys ...string) error {
	f, err := os.OpenFile(path, os.O_RDWR|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxRecord))
	if err != nil {
		return err
	}
	values := map[string]string{method: "CHAP"}
	for _, key := range keys {
		values[key] = string(a.volume.Secret[key])
		if err := checkCredential(key, values[key]); err != nil {
			return err
		}
	}
	if err := f.Chmod(0o600); err != nil {
		return err
	}
	if err := f.Truncate(0); err != nil {
		return err
	}
	_, err = f.WriteAt([]byte(replaceSettings(string(text), values)), 0)
	return err
}

// maxCredential is the maximum length of a user name or password in iscsiadm, in bytes.
const maxCredential = 255

// checkCredential returns an error if a record of iscsiadm cannot contain the value. The error does not
// contain the value.
func checkCredential(key, value string) error {
	switch {
	case len(value) > maxCredential:
		return fmt.Errorf("the key %s of the Secret has %d bytes (limit %d)", key, len(value), maxCredential)
	case strings.ContainsFunc(value, unicode.IsControl), value != strings.TrimSpace(value):
		return fmt.Errorf("the key %s of the Secret contains a line break or another control character, or begins or ends with a space; remove it", key)
	}
	return nil
}

// replaceSettings returns the text of a record of iscsiadm with other values. It omits settings with an
// empty value.
func replaceSettings(text string, values map[string]string) string {
	var result strings.Builder
	insert := func() {
		for _, key := range slices.Sorted(maps.Keys(values)) {
			if values[key] != "" {
				fmt.Fprintf(&result, "%s = %s\n", key, values[key])
			}
		}
		values = nil
	}
	replaced := slices.Collect(maps.Keys(values))
	for line := range strings.Lines(text) {
		key, _, _ := strings.Cut(line, " ")
		if slices.Contains(replaced, key) {
			continue
		}
		if strings.HasPrefix(line, "# END RECORD") {
			insert()
		}
		result.WriteString(line)
	}
	insert()
	return result.String()
}
