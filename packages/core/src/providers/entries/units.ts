/** Durations in milliseconds and sizes in bytes, so that entries read as their sources do. */
export const second = 1000
export const minute = 60_000
export const hour = 3_600_000
export const day = 86_400_000
export const mebibyte = 1_048_576

/** Of the statuses that this library answers with, those of senders that never repeat a request after any 4xx. */
export const all4xx: readonly number[] = [400, 401, 403, 404, 405, 410, 413, 415, 422]
