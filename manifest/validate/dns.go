package validate

import (
	"fmt"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Limits of resolv.conf that Kubernetes enforces.
const (
	maxNameservers  = 3
	maxSearches     = 32
	maxSearchLength = 2048
)

func validateDNS(spec *v1.PodSpec, path *field.Path) field.ErrorList {
	errs := validateOneOf(path.Child("dnsPolicy"), spec.DNSPolicy, v1.DNSClusterFirst, v1.DNSClusterFirstWithHostNet, v1.DNSDefault, v1.DNSNone)
	at := path.Child("dnsConfig")
	c := spec.DNSConfig
	if spec.DNSPolicy == v1.DNSNone && (c == nil || len(c.Nameservers) == 0) {
		errs = append(errs, field.Required(at.Child("nameservers"), "dnsPolicy None requires at least one nameserver"))
	}
	if c == nil {
		return errs
	}
	if n := len(c.Nameservers); n > maxNameservers {
		errs = append(errs, field.Forbidden(at.Child("nameservers"), fmt.Sprintf("has too many entries: %d (limit %d)", n, maxNameservers)))
	}
	for i, s := range c.Nameservers {
		errs = append(errs, validateIP(at.Child("nameservers").Index(i), s)...)
	}
	searchesPath := at.Child("searches")
	if n := len(c.Searches); n > maxSearches {
		errs = append(errs, field.Forbidden(searchesPath, fmt.Sprintf("has too many entries: %d (limit %d)", n, maxSearches)))
	}
	if n := len(strings.Join(c.Searches, " ")); n > maxSearchLength {
		errs = append(errs, field.Forbidden(searchesPath, fmt.Sprintf("is too long: %d characters with separators (limit %d)", n, maxSearchLength)))
	}
	for i, s := range c.Searches {
		if s != "." {
			errs = append(errs, invalidErrors(searchesPath.Index(i), s, validation.IsDNS1123SubdomainWithUnderscore(strings.TrimSuffix(s, ".")))...)
		}
	}
	for i := range c.Options {
		if c.Options[i].Name == "" {
			errs = append(errs, field.Required(at.Child("options").Index(i).Child("name"), ""))
		}
	}
	return errs
}

// maxHostnameOverride is the maximum length of spec.hostnameOverride.
const maxHostnameOverride = 64

func validateHostname(spec *v1.PodSpec, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if spec.Hostname != "" {
		errs = append(errs, invalidErrors(path.Child("hostname"), spec.Hostname, validation.IsDNS1123Label(spec.Hostname))...)
	}
	if spec.Subdomain != "" {
		errs = append(errs, invalidErrors(path.Child("subdomain"), spec.Subdomain, validation.IsDNS1123Label(spec.Subdomain))...)
	}
	if spec.HostnameOverride == nil {
		return errs
	}
	name, at := *spec.HostnameOverride, path.Child("hostnameOverride")
	if spec.SetHostnameAsFQDN != nil && *spec.SetHostnameAsFQDN {
		errs = append(errs, field.Forbidden(at, "must not be set together with setHostnameAsFQDN"))
	}
	if spec.HostNetwork {
		errs = append(errs, field.Forbidden(at, "must not be set for a host-network pod, which has the hostname of the node"))
	}
	if len(name) > maxHostnameOverride {
		errs = append(errs, field.TooLong(at, name, maxHostnameOverride))
	}
	return append(errs, invalidErrors(at, name, validation.IsDNS1123Subdomain(name))...)
}

func validateHostAliases(aliases []v1.HostAlias, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i := range aliases {
		at := path.Index(i)
		errs = append(errs, validateIP(at.Child("ip"), aliases[i].IP)...)
		for j, name := range aliases[i].Hostnames {
			errs = append(errs, invalidErrors(at.Child("hostnames").Index(j), name, validation.IsDNS1123Subdomain(name))...)
		}
	}
	return errs
}
