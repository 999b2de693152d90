-- Which status of each dispute the shop was told of, so that a change is told once.

ALTER TABLE executions ADD COLUMN told_disputes jsonb CHECK (jsonb_typeof(told_disputes) = 'object');
