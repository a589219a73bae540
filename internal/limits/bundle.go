// SPDX-License-Identifier: Apache-2.0

package limits

// BundleBytes is how many bytes the BTFs of a directory or tar of minimized ones may have together, read or written, and what a
// tar decompresses to. In an archive kernels share them, so that 400 bytes could become 120 GB. Those of 100 objects for 33 kernels have 419 kB, so 5,000 kernels take a quarter.
const BundleBytes = 256 << 20
