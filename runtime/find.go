package runtime

// FindSandbox returns the observed incarnation with the sandbox ID id, or nil if there is
// none.
func FindSandbox(observed []Incarnation, id string) *Incarnation {
	for i := range observed {
		if observed[i].ID == id {
			return &observed[i]
		}
	}
	return nil
}

// FindContainer returns the observed container with the ID id, and the incarnation that contains
// the container. If there is none, FindContainer returns nil, nil.
func FindContainer(observed []Incarnation, id string) (inc *Incarnation, c *Container) {
	for i := range observed {
		for j := range observed[i].Containers {
			if c := &observed[i].Containers[j]; c.ID == id {
				return &observed[i], c
			}
		}
	}
	return nil, nil
}
