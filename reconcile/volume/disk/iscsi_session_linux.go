package disk

import (
	"fmt"
	"net/netip"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"podd/manifest/disk"
	"podd/runtime/bootid"
)

// A session is an iSCSI session of this node, according to sysfs.
type session struct {
	dir     string // directory of the session's device
	host    string // name of the SCSI host, such as "host2"
	state   string // such as "LOGGED_IN"
	portals []disk.Portal
}

const loggedIn = "LOGGED_IN"

// sessions returns the sessions with a target over an interface.
func (h Host) sessions(target, iface string) ([]session, error) {
	class := filepath.Join(h.Sys, "class/iscsi_session")
	devices, err := names(class)
	if err != nil {
		return nil, err
	}
	var sessions []session
	for _, name := range devices {
		dir := filepath.Join(class, name)
		if readLine(filepath.Join(dir, "targetname")) != target || readLine(filepath.Join(dir, "ifacename")) != iface {
			continue
		}
		device, err := filepath.EvalSymlinks(filepath.Join(dir, "device"))
		if err != nil {
			continue // the session ends now
		}
		s := session{dir: device, host: filepath.Base(filepath.Dir(device)), state: readLine(filepath.Join(dir, "state"))}
		if s.portals, err = connectedPortals(device); err != nil {
			return nil, err
		}
		sessions = append(sessions, s)
	}
	return sessions, nil
}

// connectedPortals returns the portals to which a session is connected: the configured portals, and
// the portals to which the target has redirected the initiator.
func connectedPortals(device string) ([]disk.Portal, error) {
	connections, err := names(device)
	if err != nil {
		return nil, err
	}
	var portals []disk.Portal
	for _, name := range connections {
		if !strings.HasPrefix(name, "connection") {
			continue
		}
		dir := filepath.Join(device, name, "iscsi_connection", name)
		for _, prefix := range []string{"", "persistent_"} {
			port, err := strconv.ParseUint(readLine(filepath.Join(dir, prefix+"port")), 10, 16)
			if err != nil {
				continue // the connection is not established
			}
			portals = append(portals, disk.Portal{Host: readLine(filepath.Join(dir, prefix+"address")), Port: uint16(port)})
		}
	}
	return portals, nil
}

// connectsTo reports whether the session has a connection to a portal.
func (s session) connectsTo(p disk.Portal) bool {
	return slices.ContainsFunc(s.portals, func(c disk.Portal) bool { return samePortal(c, p) })
}

// samePortal reports whether two portals have the same port and address. It compares the parsed
// addresses, because an IPv6 address may be written in several ways.
func samePortal(a, b disk.Portal) bool {
	if a.Port != b.Port {
		return false
	}
	addrA, err1 := netip.ParseAddr(a.Host)
	addrB, err2 := netip.ParseAddr(b.Host)
	return err1 == nil && err2 == nil && addrA == addrB || a.Host == b.Host
}

// device returns the name of the block device of a LUN, such as "sda", or "" if the session has no such
// device. Channel and target are always 0 for iSCSI.
func (s session) device(lun int32) (string, error) {
	number := strings.TrimPrefix(s.host, "host")
	devices, err := names(filepath.Join(s.dir, fmt.Sprintf("target%s:0:0/%s:0:0:%d/block", number, number, lun)))
	if len(devices) == 0 {
		return "", err
	}
	return devices[0], err
}

// ownedDevices returns the devices of an attached disk that podd must delete. These are the devices
// of podd's own sessions, and the devices that podd's scan has added. name is the name of the disk.
func (h Host) ownedDevices(r *iscsiRecord, name string) ([]string, error) {
	boot, err := bootid.Get()
	if err != nil {
		return nil, err
	}
	lun, err := strconv.ParseInt(strings.TrimPrefix(name, "lun-"), 10, 32)
	if err != nil {
		return nil, fmt.Errorf("%s is not the name of a LUN: %w", name, err)
	}
	sessions, err := h.sessions(r.Target, r.Interface)
	if err != nil {
		return nil, err
	}
	var devices []string
	for _, s := range sessions {
		isOwn := slices.ContainsFunc(r.Logins, func(l login) bool { return l.Boot == boot && s.connectsTo(l.Portal) })
		if !isOwn && r.ScanBoots[name] != boot {
			continue
		}
		device, err := s.device(int32(lun))
		if err != nil {
			return nil, err
		}
		if device != "" {
			devices = append(devices, device)
		}
	}
	return devices, nil
}
