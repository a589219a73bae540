// SPDX-License-Identifier: Apache-2.0

package limits

// ConfigBytes is how long a btfgen.yaml may be. Real: 2 kB. Its parser goes at most 10,000 levels deep.
const ConfigBytes = 256 << 10
