package limits

// What `corpus lint` looks at to tell the machine of a kernel by the members of
// its structs. A member that is further away counts as missing.
const (
	// LintNesting bounds how deep anonymous structs nest. Real: 2.
	LintNesting = 4

	// LintMembers bounds the members, as a struct can contain itself many times over.
	// Real: 272.
	LintMembers = 100_000
)
