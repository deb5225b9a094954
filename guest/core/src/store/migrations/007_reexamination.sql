-- Which batch of the rules a batch looks at again with a model: a day's share of them is bounded.
ALTER TABLE batches ADD COLUMN again INTEGER;
UPDATE batches SET again = json_extract(draft, '$.again') WHERE layer = 'l1' AND json_valid(draft) AND json_extract(draft, '$.again') IS NOT NULL;
CREATE INDEX batches_again ON batches (created_at) WHERE again IS NOT NULL;
