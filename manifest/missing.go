package manifest

import (
	"cmp"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
)

// lack is an object, or a key of one, that is not there.
type lack struct {
	Use
	what string // the object
	text string // what of it is not there
}

// missing says what a pod cannot start without. Until its source
// was seen whole nobody knows what is not there, so what is optional counts too.
func missing(p *Pod, used []Use, s *Set) Wait {
	complete := s.Complete[p.Origin.Source]
	lacks := slices.DeleteFunc(lacksOf(p, used, s.Objects), func(l lack) bool {
		return l.Role == ForPull || l.Role == ForEphemeral || l.Optional && complete
	})
	if len(lacks) == 0 {
		return Wait{}
	}
	first := lacks[0]
	text := fmt.Sprintf("%s (%s) %s", first.what, placeOf(p.Origin, first.Field), first.text)
	text += others(p, lacks[1:])
	if !complete {
		text += ", which was not read whole yet"
	}
	return Wait{Missing: text, Volume: first.volumeOf(p.Spec), Reason: "CreateContainerConfigError"}
}

// mostOthers is how many are named beside the first.
const mostOthers = 3

// others names what else there is not, "" for nothing.
func others(p *Pod, lacks []lack) string {
	if len(lacks) == 0 {
		return ""
	}
	var named []string
	for _, l := range lacks[:min(len(lacks), mostOthers)] {
		named = append(named, l.what+" at "+placeOf(p.Origin, l.Field))
	}
	text := " (likewise " + strings.Join(named, ", ")
	if n := len(lacks) - mostOthers; n > 0 {
		text += fmt.Sprintf(" and %d more", n)
	}
	return text + ")"
}

// Unsupplied are the objects and keys that pods refer to and that are not
// beside them, each once for a pod. What is optional is none.
func Unsupplied(pods []*Pod, objects map[string]Objects, severity Severity) []Problem {
	var problems []Problem
	for _, p := range pods {
		told := map[string]bool{}
		for _, l := range lacksOf(p, Uses(p), objects) {
			text := l.what + " " + l.text
			if l.Optional && l.Role != ForPull || told[text] {
				continue
			}
			told[text] = true
			problem := Problem{Severity: severity, Path: p.Origin.Path, Position: p.Origin.Position(l.Field), Pod: p.Key, Field: l.Field}
			problem.Message = text + "; the pod waits until it is there"
			if l.Role == ForPull {
				problem.Severity, problem.Message = Warning, text+"; the image is pulled without it"
			}
			problems = append(problems, problem)
		}
	}
	return problems
}

func lacksOf(p *Pod, used []Use, objects map[string]Objects) []lack {
	own := objects[p.Origin.Source]
	var lacks []lack
	for _, u := range used {
		what := fmt.Sprintf("%s %q", u.Object.Kind, u.Object.Name)
		origin, there := own.Origins[u.Object]
		if !there {
			lacks = append(lacks, lack{u, what, "is " + nowhere(p, u.Object, objects)})
			continue
		}
		if u.Object.Kind == kindClaim {
			lacks = append(lacks, own.claimLacks(p, u, what)...)
		}
		for _, key := range u.Keys {
			if !own.has(u.Object, key, u.Role) {
				lacks = append(lacks, lack{u, what, fmt.Sprintf("at %s has no key %q%s", placeOf(origin, ""), clip(key, 80), meant(key, own.keys(u.Object)))})
			}
		}
	}
	return lacks
}

// nowhere says where an object was looked for.
func nowhere(p *Pod, ref ObjectRef, objects map[string]Objects) string {
	text := "in none of the files"
	if p.Origin.Source != "" {
		text = "not in " + p.Origin.Source
	}
	for _, other := range slices.Sorted(maps.Keys(objects)) {
		if _, there := objects[other].Origins[ref]; there {
			return text + " (the one in " + other + " serves pods from there alone)"
		}
	}
	var names, namespaces []string
	for have := range objects[p.Origin.Source].Origins {
		switch {
		case have.Kind != ref.Kind:
		case have.Namespace == ref.Namespace:
			names = append(names, have.Name)
		case have.Name == ref.Name:
			namespaces = append(namespaces, have.Namespace)
		}
	}
	if len(namespaces) > 0 {
		return text + " in namespace " + ref.Namespace + " (there is one in " + slices.Min(namespaces) + ")"
	}
	return text + meant(ref.Name, names)
}

// meant is a name that was likely meant, in brackets, or "".
func meant(name string, known []string) string {
	slices.Sort(known)
	if best := closest(name, slices.Values(known)); best != "" {
		return ` (did you mean "` + best + `"?)`
	}
	return ""
}

// placeOf is short, since it stands within a sentence: "db.yaml:17".
func placeOf(o Origin, field string) string {
	at := o
	if line := o.Position(field).Line; line > 0 {
		at.Line = int(line)
	}
	if o.Kind != KindURL {
		at.Path = cmp.Or(path.Base(o.Path), o.Path)
	}
	return at.String()
}

// has tells whether an object has a key for a role: variables are text, and so
// come from a ConfigMap's data alone.
func (o *Objects) has(ref ObjectRef, key string, role Role) bool {
	if ref.Kind == "Secret" {
		_, ok := o.Secrets[ref.NamespacedName].Data[key]
		return ok
	}
	c := o.ConfigMaps[ref.NamespacedName]
	_, text := c.Data[key]
	_, bytes := c.BinaryData[key]
	return text || bytes && role == ForFiles
}

func (o *Objects) keys(ref ObjectRef) []string {
	if ref.Kind == "Secret" {
		return slices.Collect(maps.Keys(o.Secrets[ref.NamespacedName].Data))
	}
	return slices.Collect(maps.Keys(o.ConfigMaps[ref.NamespacedName].Data))
}
