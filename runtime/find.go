package runtime

// FindSandbox returns the observed incarnation with the sandbox id; nil if there is none.
func FindSandbox(observed []Incarnation, id string) *Incarnation {
	for i := range observed {
		if observed[i].ID == id {
			return &observed[i]
		}
	}
	return nil
}

// FindContainer returns the observed container with an ID, and its incarnation; nil if there
// is none.
func FindContainer(observed []Incarnation, id string) (*Incarnation, *Container) {
	for i := range observed {
		for j := range observed[i].Containers {
			if c := &observed[i].Containers[j]; c.ID == id {
				return &observed[i], c
			}
		}
	}
	return nil, nil
}
