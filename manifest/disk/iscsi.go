package disk

import (
	"net/netip"
	"slices"
	"strconv"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"podd/manifest/lazyregexp"
)

// defaultPort is the TCP port of a portal if its text contains no port.
const defaultPort = 3260

// DefaultInterface is the iscsiadm interface of a volume that does not set iscsiInterface.
const DefaultInterface = "default"

// An ISCSI identifies a disk of an iSCSI target, and the way in which podd logs in to the target.
type ISCSI struct {
	// Portals contains the addresses of the target in the order of the manifest, each once. There is
	// at least one.
	Portals []Portal
	// Target is the name of the target, such as "iqn.2001-04.com.example:disk".
	Target string
	LUN    int32
	// Interface is the name of an interface of iscsiadm.
	Interface string
	// Initiator is the name of the initiator that replaces the initiator of the interface; "" means
	// the initiator of the interface.
	Initiator string
	// DiscoveryCHAP and SessionCHAP report whether the initiator authenticates with CHAP in the
	// discovery and in the session.
	DiscoveryCHAP, SessionCHAP bool
}

// A Portal is a network address of an iSCSI target.
type Portal struct {
	Host string // IP address without brackets, or DNS name
	Port uint16
}

// String returns the portal in the format of iscsiadm.
func (p Portal) String() string {
	host := p.Host
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	return host + ":" + strconv.Itoa(int(p.Port))
}

var (
	// The characters after the colon are a subset of those that Kubernetes accepts: a slash or a
	// shell character would be dangerous in the name of a file or in a command.
	iqn = lazyregexp.New(`^iqn\.\d{4}-\d{2}\.[A-Za-z0-9.-]+:[A-Za-z0-9._:@+=~-]+$`)
	eui = lazyregexp.New(`^eui\.[A-Za-z0-9]{16}$`)
	naa = lazyregexp.New(`^naa\.[A-Za-z0-9]{32}$`)

	interfaceName = lazyregexp.New(`^[A-Za-z0-9][A-Za-z0-9._:-]{0,63}$`)
)

// maxNodeName is the maximum length of the name of a target or initiator (RFC 3720).
const maxNodeName = 223

// PersistentSource returns the source of a PersistentVolume with the values of an inline source. The
// secretRef has no namespace, which means the namespace of the pod.
func PersistentSource(s *v1.ISCSIVolumeSource) *v1.ISCSIPersistentVolumeSource {
	p := &v1.ISCSIPersistentVolumeSource{
		TargetPortal: s.TargetPortal, IQN: s.IQN, Lun: s.Lun, ISCSIInterface: s.ISCSIInterface, FSType: s.FSType, ReadOnly: s.ReadOnly,
		Portals: s.Portals, DiscoveryCHAPAuth: s.DiscoveryCHAPAuth, SessionCHAPAuth: s.SessionCHAPAuth, InitiatorName: s.InitiatorName,
	}
	if s.SecretRef != nil {
		p.SecretRef = &v1.SecretReference{Name: s.SecretRef.Name}
	}
	return p
}

// NewISCSI returns the parameters of an iscsi source. at is the path of the source. The result is
// valid only if the list of errors is empty.
func NewISCSI(s *v1.ISCSIPersistentVolumeSource, at *field.Path) (ISCSI, field.ErrorList) {
	d := ISCSI{Target: s.IQN, LUN: s.Lun, Interface: s.ISCSIInterface, DiscoveryCHAP: s.DiscoveryCHAPAuth, SessionCHAP: s.SessionCHAPAuth}
	errs := d.addPortal(s.TargetPortal, at.Child("targetPortal"))
	for i, text := range s.Portals {
		errs = append(errs, d.addPortal(text, at.Child("portals").Index(i))...)
	}
	errs = append(errs, validateNodeName(s.IQN, at.Child("iqn"))...)
	errs = append(errs, validateLUN(s.Lun, at.Child("lun"))...)
	if d.Interface == "" {
		d.Interface = DefaultInterface
	}
	if !interfaceName().MatchString(d.Interface) {
		errs = append(errs, field.Invalid(at.Child("iscsiInterface"), s.ISCSIInterface, "must be the name of an interface of iscsiadm: at most 64 letters, digits, '.', '_', ':' and '-'"))
	}
	if s.InitiatorName != nil {
		d.Initiator = *s.InitiatorName
		errs = append(errs, validateNodeName(d.Initiator, at.Child("initiatorName"))...)
	}
	if s.SecretRef == nil && (d.DiscoveryCHAP || d.SessionCHAP) {
		errs = append(errs, field.Required(at.Child("secretRef"), "specify the Secret with the CHAP credentials"))
	}
	return d, append(errs, ValidateFilesystem(s.FSType, at.Child("fsType"))...)
}

// addPortal parses text and adds the portal to d. It adds each portal once.
func (d *ISCSI) addPortal(text string, at *field.Path) field.ErrorList {
	p, ok := parsePortal(text)
	switch {
	case text == "":
		return field.ErrorList{field.Required(at, "specify the IP address of the target, or address:port")}
	case !ok:
		return field.ErrorList{field.Invalid(at, text, "must be an IP address or a DNS name, with or without a port, such as 192.0.2.1:3260 or [2001:db8::1]:3260")}
	case !slices.Contains(d.Portals, p):
		d.Portals = append(d.Portals, p)
	}
	return nil
}

// parsePortal parses a portal. ok is false if text is invalid.
func parsePortal(text string) (p Portal, ok bool) {
	host, port := text, ""
	if a, err := netip.ParseAddr(text); err != nil || a.Is4() {
		if i := strings.LastIndexByte(text, ':'); i >= 0 && !strings.HasSuffix(text, "]") {
			host, port = text[:i], text[i+1:]
			if port == "" {
				return p, false
			}
		}
		if bracketed, found := strings.CutPrefix(host, "["); found {
			if host, found = strings.CutSuffix(bracketed, "]"); !found || !strings.Contains(host, ":") {
				return p, false
			}
		} else if strings.Contains(host, ":") { // an IPv6 address with a port needs brackets
			return p, false
		}
	}
	p = Portal{Host: host, Port: defaultPort}
	if port != "" {
		n, err := strconv.ParseUint(port, 10, 16)
		if err != nil || n == 0 || strconv.FormatUint(n, 10) != port {
			return p, false
		}
		p.Port = uint16(n)
	}
	if a, err := netip.ParseAddr(host); err == nil {
		p.Host = a.String()
		return p, a.Zone() == ""
	}
	return p, len(validation.IsDNS1123Subdomain(host)) == 0
}

// validateNodeName validates the name of a target or of an initiator.
func validateNodeName(name string, at *field.Path) field.ErrorList {
	switch {
	case name == "":
		return field.ErrorList{field.Required(at, "")}
	case len(name) > maxNodeName:
		return field.ErrorList{field.TooLong(at, "", maxNodeName)}
	case !iqn().MatchString(name) && !eui().MatchString(name) && !naa().MatchString(name):
		return field.ErrorList{field.Invalid(at, name, "must be an iSCSI name, such as iqn.2001-04.com.example:disk")}
	}
	return nil
}

// The keys of a Secret with CHAP credentials. They are the names of the settings of iscsiadm.
const (
	DiscoveryUser, DiscoveryPassword     = "discovery.sendtargets.auth.username", "discovery.sendtargets.auth.password"
	DiscoveryUserIn, DiscoveryPasswordIn = "discovery.sendtargets.auth.username_in", "discovery.sendtargets.auth.password_in"
	SessionUser, SessionPassword         = "node.session.auth.username", "node.session.auth.password"
	SessionUserIn, SessionPasswordIn     = "node.session.auth.username_in", "node.session.auth.password_in"
)

// CHAPKeys returns the keys that the Secret of an iscsi source must contain. It returns nil if the
// source does not use CHAP.
func CHAPKeys(s *v1.ISCSIPersistentVolumeSource) []string {
	var keys []string
	if s.DiscoveryCHAPAuth {
		keys = append(keys, DiscoveryUser, DiscoveryPassword)
	}
	if s.SessionCHAPAuth {
		keys = append(keys, SessionUser, SessionPassword)
	}
	return keys
}
