package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"podd/cmd/podd/internal/config"
	"podd/cmd/podd/internal/once"
	"podd/manifest"
	"podd/reconcile"
	"podd/reconcile/volume"
	"podd/server"
)

// Run lists what is kept of claims, or removes it. The machine says who uses a
// claim; which ones are wanted a podd that runs does, or the sources that are
// given.
func (c *VolumeCmd) Run(ctx context.Context, s Streams) error {
	cfg, err := loadConfig(c.Flags, s)
	if err != nil {
		return err
	}
	running := beside(ctx, &c.Flags, &cfg, s.Err)
	k := keeper{cfg: &cfg, out: s.Out, err: s.Err, claims: volume.Claims{Root: claimsDir(&cfg)}}
	k.wanted, err = wantedClaims(ctx, running, &cfg)
	switch {
	case errors.Is(err, errUnknownWishes) && c.Action == "ls":
	case errors.Is(err, errUnknownWishes):
		return exitWith(codeUsage, fmt.Errorf("removing volumes: %w", err))
	case err != nil:
		return err
	}
	if c.Action == "ls" {
		return k.list(c.Output)
	}
	return k.remove(ctx, c.Claims)
}

// keeper is what one call of podd volume works with.
type keeper struct {
	cfg      *config.Config
	out, err io.Writer
	claims   volume.Claims
	wanted   []server.ClaimView
}

// wish is what is requested of a claim, and where; "" when nobody wants it.
func (k *keeper) wish(name types.NamespacedName) (size, place string) {
	for _, c := range k.wanted {
		if c.Claim == server.Key(name) {
			return c.Requested, manifest.Origin{Path: c.Path, Line: c.Line}.String()
		}
	}
	return "", ""
}

// podRoots are the directories of pod directories: podd's, and those of runs to
// completion.
func (k *keeper) podRoots() []string {
	roots := []string{podsDir(k.cfg.RootDir)}
	for _, run := range (once.Place{Root: k.cfg.RootDir}).All() {
		roots = append(roots, podsDir(run))
	}
	return roots
}

// users are names of pods by the UIDs of their directories.
func (k *keeper) users(uids []types.UID) ([]string, error) {
	var list []string
	known := map[types.UID]types.NamespacedName{}
	for _, root := range k.podRoots() {
		names, err := reconcile.Journals{Root: root}.Names()
		if err != nil {
			return nil, err
		}
		for uid, name := range names {
			known[uid] = name
		}
	}
	for _, uid := range uids {
		name := strings.TrimSuffix(known[uid].Name, "-"+k.cfg.NodeName)
		list = append(list, cmp.Or(name, string(uid)))
	}
	slices.Sort(list)
	return slices.Compact(list), nil
}

// keptVolume is what is kept of one claim.
type keptVolume struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	Requested string `json:"requested,omitempty"` // "1Gi"; "" when no claim is there
	// UsedBy are pods whose directories are here.
	UsedBy []string `json:"usedBy,omitempty"`
	// WantedBy is where the claim is written; "" for nowhere.
	WantedBy string `json:"wantedBy,omitempty"`
	// Volume is the PersistentVolume it is bound to; "" for a directory of podd's.
	Volume string `json:"volume,omitempty"`
	Path   string `json:"path"`
}

func (k *keeper) kept() ([]keptVolume, error) {
	all, err := k.claims.List(k.podRoots()...)
	if err != nil {
		return nil, err
	}
	out := []keptVolume{}
	for _, one := range all {
		users, err := k.users(one.Users)
		if err != nil {
			return nil, err
		}
		size, place := k.wish(one.NamespacedName)
		out = append(out, keptVolume{one.Namespace, one.Name, size, users, place, one.Volume, one.Path})
	}
	return out, nil
}

func (k *keeper) list(format string) error {
	kept, err := k.kept()
	switch {
	case err != nil:
		return err
	case format != "":
		return asData(k.out, format, kept)
	case len(kept) == 0:
		fmt.Fprintln(k.err, "podd: no claim has a volume")
		return nil
	}
	lines := [][]string{{"NAMESPACE", "NAME", "REQUESTED", "USED BY", "WANTED BY", "VOLUME"}}
	for _, one := range kept {
		place, where := one.WantedBy, one.Path
		if place != "" {
			place = shortPath(place, workingDir())
		}
		if one.Volume != "" {
			where = "PersistentVolume " + one.Volume
		}
		line := []string{one.Namespace, one.Name, orNone(one.Requested), orNone(strings.Join(one.UsedBy, ",")), orNone(place), where}
		for i := range line {
			line[i] = plain(line[i])
		}
		lines = append(lines, line)
	}
	var t table
	t.fit(lines)
	for _, line := range lines {
		if _, err := io.WriteString(k.out, t.line(line)); err != nil {
			return err
		}
	}
	return nil
}

// remove refuses all when one of them is wanted.
func (k *keeper) remove(ctx context.Context, claims []string) error {
	var names []types.NamespacedName
	for _, text := range claims {
		namespace, name, ok := strings.Cut(text, "/")
		if !ok {
			namespace, name = v1.NamespaceDefault, text
		}
		key := types.NamespacedName{Namespace: namespace, Name: name}
		if _, place := k.wish(key); place != "" {
			return fmt.Errorf("removing claim %s: %s wants it; take it out of there first", key, place)
		}
		names = append(names, key)
	}
	for _, name := range names {
		err := k.removeOne(ctx, name)
		if err != nil && !errors.Is(err, volume.ErrLeft) {
			return err
		}
		if err != nil {
			fmt.Fprintf(k.err, "podd: warning: %v\n", err)
		}
		fmt.Fprintf(k.err, "podd: claim %s removed\n", name)
	}
	return nil
}

func (k *keeper) removeOne(ctx context.Context, name types.NamespacedName) error {
	err := k.claims.Remove(ctx, name, k.podRoots()...)
	if !errors.Is(err, volume.ErrInUse) {
		return err
	}
	kept, lost := k.claims.List(k.podRoots()...)
	for _, one := range kept {
		if users, why := k.users(one.Users); one.NamespacedName == name && why == nil && lost == nil {
			return fmt.Errorf("%w: %s; remove these first", err, strings.Join(users, ","))
		}
	}
	return err
}
